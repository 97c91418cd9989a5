"""From verdicts on held-out replies to the table of the study, and the files that reproduce it."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from palate.judging.asking import Judge
from palate.models.spec import Price
from palate.rubrics.baseline import load_baseline
from palate.studies.agreement_files import LABEL_COLUMNS, SCORE_COLUMNS
from palate.studies.agreement_rows import ConditionScore, LabelRow
from palate.studies.conditions import Condition, prompt_files
from palate.studies.held_out import Rater
from palate.studies.held_out_results import HeldOutAgreement, JudgeUsed, RaterUsed, Unscored
from palate.studies.human_agreement import agreement
from palate.studies.judging_held_out import HeldOutVerdict, Place, by_reply, unscored_kind
from palate.studies.panel import PanelRule, disagreements, panel_score
from palate.types import Usage

SMALL_JUDGE = (
    "The judge is the embedded model of 135 million parameters, which is not expected to pass: its "
    "agreement should lie near chance, 0.5. It shows that the machinery works; name a strong model "
    "under [judge], or with --judge, for numbers that mean something."
)
NO_ANSWER = "no answer came back"
_MANY = 0.1  # share of a judge's verdicts without a score from which it is remarked on


@dataclass(frozen=True)
class Setting:
    """How the study was asked for."""

    study: str
    conditions: Sequence[Condition]
    judges: Sequence[Judge]
    panel: PanelRule
    confidence: bool
    threshold: float | None
    prices: Mapping[str, Price]
    draw_seed: int
    limit: int | None
    seed: int
    resamples: int


def score_rows(
    raters: Sequence[Rater], verdicts: Sequence[HeldOutVerdict], setting: Setting
) -> list[ConditionScore]:
    """One row for each reply under each condition, whether it was scored or not."""
    given = by_reply(verdicts)
    rows = []
    for condition in setting.conditions:
        for rater in raters:
            for reply in rater.replies:
                key = (reply.user, reply.session, reply.turn)
                found = list(given.get(Place(condition.name, *key), {}).values())
                sure = [one.confidence for one in found if one.confidence is not None]
                score = panel_score([v.score for v in found if v.score is not None], setting.panel)
                rows.append(
                    ConditionScore(
                        condition.name,
                        *key,
                        score,
                        fmean(sure) if sure and score is not None else None,
                        float(reply.length),
                    )
                )
    return rows


def label_rows(raters: Iterable[Rater]) -> list[LabelRow]:
    """The ratings of the judged replies."""
    return [row for rater in raters for row in rater.labels]


def labels_csv(rows: Iterable[LabelRow]) -> str:
    """LABELS.csv of the CSV mode."""
    return _csv(LABEL_COLUMNS, (row[:4] for row in rows))


def scores_csv(rows: Iterable[ConditionScore]) -> str:
    """SCORES.csv of the CSV mode; numbers are written so that they are read back exactly."""
    return _csv((*SCORE_COLUMNS, "confidence", "length"), rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(header)
    for row in rows:
        write(row)  # floats as repr, which loses nothing; None as empty
    return text.getvalue()


def held_out_agreement(
    raters: Sequence[Rater],
    verdicts: Sequence[HeldOutVerdict],
    rows: Sequence[ConditionScore],
    setting: Setting,
    *,
    made_at: str,
) -> HeldOutAgreement:
    """The study's result.

    Raises:
        InputError: there is no rated reply.
    """
    labels = label_rows(raters)
    found = agreement(
        labels,
        rows,
        seed=setting.seed,
        resamples=setting.resamples,
        confidence=setting.threshold,
    )
    names = [judge.model.name for judge in setting.judges]
    given = by_reply(verdicts)
    judges = tuple(_judge(judge, raters, verdicts, setting) for judge in setting.judges)
    return HeldOutAgreement(
        **{name: getattr(found, name) for name in type(found).model_fields},
        study=setting.study,
        order=tuple(condition.name for condition in setting.conditions),
        raters={rater.user: _rater(rater) for rater in raters},
        judges=judges,
        panel=setting.panel if len(judges) > 1 else None,
        disagreement=tuple(disagreements(given, names)),
        counts={c.name: _counts(c, raters, given) for c in setting.conditions},
        prompts={
            c.name: prompt_files(c, setting.judges[0].form, confidence=setting.confidence)
            for c in setting.conditions
        },
        baseline=_baseline(setting.conditions),
        confidence_asked=setting.confidence,
        draw_seed=setting.draw_seed,
        limit=setting.limit,
        cautions=tuple(_cautions(raters, judges, setting)),
        made_at=made_at,
    )


def _judge(
    judge: Judge, raters: Sequence[Rater], verdicts: Sequence[HeldOutVerdict], setting: Setting
) -> JudgeUsed:
    name = judge.model.name
    own = [one for one in verdicts if one.judge == name]
    usage = sum((one.usage for one in own), start=Usage())
    rows = score_rows(raters, own, setting)
    alone = agreement(label_rows(raters), rows, resamples=2).conditions
    unscored = Counter(unscored_kind(one.unscored) for one in own if one.unscored is not None)
    asked = len(rows) - len(own)
    if asked:
        unscored[NO_ANSWER] += asked
    price = setting.prices.get(name)
    return JudgeUsed(
        model=name,
        revisions=tuple(sorted({one.revision for one in own} - {""})),
        form=judge.form,
        score_kind=judge.score_kind,
        calls=sum(one.attempts for one in own),
        usage=usage,
        cost=None if price is None else price.cost(usage),
        scored=sum(one.score is not None for one in own),
        unscored=dict(sorted(unscored.items())),
        agreement={condition.name: alone[condition.name].macro for condition in setting.conditions},
    )


def _rater(rater: Rater) -> RaterUsed:
    return RaterUsed(
        rated_replies=rater.rated,
        judged_replies=len(rater.replies),
        held_out_sessions=dict(rater.sessions),
        rubric=None if rater.rubric is None else rater.rubric.sha256,
        examples=rater.sources,
        sessions_without_card=rater.neutral,
    )


def _counts(
    condition: Condition,
    raters: Sequence[Rater],
    given: Mapping[Place, Mapping[str, HeldOutVerdict]],
) -> Unscored:
    scored = 0
    unscored: dict[str, int] = defaultdict(int)
    for rater in raters:
        for reply in rater.replies:
            place = Place(condition.name, reply.user, reply.session, reply.turn)
            found = given.get(place, {}).values()
            if any(one.score is not None for one in found):
                scored += 1
            else:
                kinds = {unscored_kind(one.unscored or NO_ANSWER) for one in found} or {NO_ANSWER}
                unscored[" and ".join(sorted(kinds))] += 1
    return Unscored(scored=scored, unscored=dict(sorted(unscored.items())))


def _baseline(conditions: Sequence[Condition]) -> str | None:
    if all(condition.name != "baseline" for condition in conditions):
        return None
    rubric = load_baseline()
    return f"{rubric.name}, {rubric.version}, after {rubric.source}"


def _cautions(
    raters: Sequence[Rater], judges: Sequence[JudgeUsed], setting: Setting
) -> Iterator[str]:
    if any(judge.model.startswith("local:") for judge in judges):
        yield SMALL_JUDGE
    for judge in judges:
        yield from _silent(judge, panel=len(judges) > 1)
    neutral = sum(rater.neutral for rater in raters)
    if neutral:
        yield (
            f"The cards of {neutral:,} sessions are not here: what a judge reads of the character "
            "there is its name at most, which the generic and the baseline condition suffer from."
        )
    if len({reply.subject.language for rater in raters for reply in rater.replies}) > 1:
        yield (
            "Lengths are in characters, and the replies are in two languages: the correlation with "
            "length says little."
        )
    if any(condition.name == "baseline" for condition in setting.conditions):
        yield (
            "baseline is this project's re-implementation of a public description, not the "
            "benchmark's own rubric or prompts."
        )
    yield (
        "A history holds one rating of a reply, so there is no human ceiling here; second ratings "
        "go into the column occasion of --labels."
    )


def _silent(judge: JudgeUsed, *, panel: bool) -> Iterator[str]:
    missing = sum(judge.unscored.values())
    total = judge.scored + missing
    if missing <= _MANY * total:
        return
    why = ", ".join(f"{kind} {count:,}" for kind, count in judge.unscored.items())
    rest = "; there the panel's score is that of the others" if panel else ""
    yield f"{judge.model} gave no score for {missing:,} of {total:,} verdicts ({why}){rest}."
