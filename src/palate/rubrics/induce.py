"""One person's rubric out of their training sessions (paper 3.3).

    contrasts of the proposing part      what the person rated high and low, side by side
    -> candidate rules                   each with the turns that show it, which are checked
    -> tested on the validation slice    does the rule pick the reply that the person preferred?
    -> revised once, tested again        on pairs that the reviser did not see
    -> a small set, summed up, frozen

Both parts are training sessions: a held-out session is a type error. What cannot be supported ends
in a refusal of one sentence; a rubric is never filled up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from palate.errors import InputError, ModelError
from palate.models.client import Model, Sampling
from palate.rubrics.asking import Asker, Unread, all_of, prompt_files
from palate.rubrics.checking import Evidence
from palate.rubrics.choosing import best, entries, reactions
from palate.rubrics.contrasts import Contrast
from palate.rubrics.freeze import SCHEMA, freeze, verify_evidence
from palate.rubrics.material import Material, material
from palate.rubrics.merging import merged
from palate.rubrics.proposing import read_proposal
from palate.rubrics.revising import Failed, Revised, can_be_revised, revised
from palate.rubrics.rules import (
    KINDS,
    Induction,
    InductionSettings,
    Journal,
    Key,
    Outcome,
    Rule,
    Separation,
    distinct,
    tried,
)
from palate.rubrics.testing_rules import Result, outcome_of, separation, tested
from palate.rubrics.wording import worded
from palate.types import PersonalRubric, TrainingSession, digest


class Induced(NamedTuple):
    """A frozen rubric, and the record of how it came about."""

    rubric: PersonalRubric
    record: Induction


async def induce(
    training: Sequence[TrainingSession],
    model: Model,
    *,
    sampling: Sampling,
    settings: InductionSettings = InductionSettings(),  # noqa: B008 - frozen
    branches: Collection[Collection[str]] = (),
    journal: Journal | None = None,
    observe: Callable[[str], None] = lambda stage: None,
) -> Induced:
    """The rubric of the one user whose training sessions these are.

    Args:
        sampling: `max_tokens` bounds each answer.
        branches: ids of sessions that are branches of one chat; they stay in one part.
        journal: where answers are kept; what it holds is not asked again.
        observe: called with the stage after every answer.

    Raises:
        TypeError: something other than training sessions, which would leak the held-out part.
        InputError: too little was rated, or no set of rules held: the documented refusals.
        ModelError: the model refused, gave nothing readable or could not be reached.
    """
    found = material(training, settings, branches=branches, answer_tokens=sampling.max_tokens)
    asker = Asker(found.user_id, found.tongue, model, sampling, journal, observe)
    work = _Work(found, settings, asker)
    await work.propose()
    await work.test()
    await work.revise()
    rubric = await work.rubric(training)
    return Induced(rubric, work.record(rubric))


class _Work:
    """One induction under way: candidates, their results and what becomes of them."""

    def __init__(self, found: Material, settings: InductionSettings, asker: Asker) -> None:
        self.found, self.settings, self.asker = found, settings, asker
        self.evidence = Evidence(found.replies)
        self.proposed = self.merged = 0
        self.dropped: Counter[str] = Counter()
        self.citations: Counter[str] = Counter()
        self.rules: dict[Key, Rule] = {}
        self.results: dict[Key, Sequence[Result]] = {}
        self.outcomes: dict[Key, Outcome] = {}

    async def propose(self) -> None:
        """Candidates with evidence that holds, near-duplicates made one."""
        chunks = self.found.chunks
        names, tongue = self.found.names, self.found.tongue
        answers = await all_of(
            [
                self.asker.ask(c.query, lambda text: read_proposal(text, names, tongue))
                for c in chunks
            ]
        )
        supported: list[Rule] = []
        for chunk, answer in zip(chunks, answers, strict=True):
            if isinstance(answer, Unread):
                continue
            self.proposed += len(answer.rules) + answer.dropped.total()
            self.dropped += answer.dropped
            supported += self._supported(answer.rules, chunk.shown)
        unread = [answer.reason for answer in answers if isinstance(answer, Unread)]
        if len(unread) == len(answers):
            raise self._no_answer("proposed no rule", unread[-1])
        candidates = self._bounded(distinct(supported))
        kept = await merged(candidates, self.asker, lambda r: (len(r.evidence), -len(r.text)))
        self.merged += len(candidates) - len(kept)
        self.rules = {rule.key: rule for rule in kept}

    async def test(self) -> None:
        """Every candidate on every trial of the validation slice."""
        rules = list(self.rules.values())
        self._refuse_without({rule.kind for rule in rules})
        self.results = dict(await self._tested(rules))
        if not any(self.separation(rule).asked for rule in rules):
            raise self._no_answer("tested no rule", next(iter(self.asker.unread), "no answer"))
        for rule in rules:
            self.outcomes[rule.key] = outcome_of(rule, self.separation(rule))

    async def revise(self) -> None:
        """Failed rules rewritten once, and tested where their reviser saw nothing."""
        failed = [
            Failed(rule, self.results[rule.key])
            for rule in self.rules.values()
            if self.outcomes[rule.key] != "kept" and can_be_revised(rule)
        ][: self.settings.revisions]
        answers = await revised(failed, self.asker, self.found.room)
        rewritten = dict(self._rewritten(answers))
        results = await self._tested([rule for rule, _ in rewritten.values()])
        for answer in answers:
            self.outcomes[answer.old.key] = "withdrawn"
        for old, (rule, seen) in rewritten.items():
            self.outcomes[old] = "rewritten"
            self.rules[rule.key] = rule
            self.results[rule.key] = [r for r in results[rule.key] if r.pair not in seen]
            self.outcomes[rule.key] = outcome_of(rule, self.separation(rule))

    async def rubric(self, training: Sequence[TrainingSession]) -> PersonalRubric:
        """The rules that held, summed up and frozen."""
        rules = await self._chosen()
        self._refuse_without({rule.kind for rule in rules})
        found = {rule.key: self.separation(rule) for rule in rules}
        rewards, penalties = entries(rules, "reward", found), entries(rules, "penalty", found)
        reaction_rules = reactions(rules)
        wording = await worded(rewards, penalties, reaction_rules, self.asker)
        digests = {item.session.session_id: item.session.digest() for item in training}
        rubric = freeze(
            {
                "schema": SCHEMA,
                "track": "personal",
                "user_id": self.found.user_id,
                "language": self.found.tongue,
                "summary": wording.summary,
                "rewards": [one.model_dump() for one in rewards],
                "penalties": [one.model_dump() for one in penalties],
                "reactions": [one.model_dump() for one in reaction_rules],
                "anchors": wording.anchors,
                "provenance": {
                    "author": "model",
                    "model": self.asker.model.name,
                    "prompt_sha256": digest(prompt_files(self.found.tongue)),
                    "training_sessions": digests,
                },
            }
        )
        verify_evidence(rubric, [item.session for item in training])
        return rubric

    def record(self, rubric: PersonalRubric) -> Induction:
        """What was tried, for the file beside the rubric."""
        slices = self.found.slices
        rules = sorted(
            self.rules.values(),
            key=lambda rule: (KINDS.index(rule.kind), -self.separation(rule).value),
        )
        return Induction(
            user_id=rubric.user_id,
            rubric=rubric.sha256,
            model=self.asker.model.name,
            revision=self.asker.revision,
            prompts=prompt_files(self.found.tongue),
            settings=self.settings,
            proposing_sessions=tuple(item.session.session_id for item in slices.proposing),
            validation_sessions=tuple(item.session.session_id for item in slices.validation),
            contrasts=len(self.found.contrasts),
            trials=len(self.found.trials),
            proposed=self.proposed,
            dropped=dict(+self.dropped),
            citations_dropped=dict(+self.citations),
            merged=self.merged,
            unread=dict(self.asker.unread),
            rules=tuple(tried(r, self.separation(r), self.outcomes[r.key]) for r in rules),
            calls=self.asker.calls,
            usage=self.asker.usage,
        )

    def separation(self, rule: Rule) -> Separation:
        """The counts of a rule so far."""
        return separation(self.results.get(rule.key, ()))

    def _rewritten(
        self, answers: Sequence[Revised]
    ) -> Iterator[tuple[Key, tuple[Rule, Collection[Contrast]]]]:
        """Rules in new words that no other rule has, by the key of the old one."""
        said = {(kind == "reaction", text) for kind, _, text in self.rules}
        for answer in answers:
            if answer.new is None:
                continue
            kind, _, text = answer.new.key
            if (kind == "reaction", text) not in said:
                said.add((kind == "reaction", text))
                yield answer.old.key, (answer.new, answer.seen)

    def _supported(self, rules: Sequence[Rule], shown: Collection[str]) -> list[Rule]:
        held = [self.evidence.supporting(rule, shown, self.citations) for rule in rules]
        self.dropped["has no evidence that holds"] += held.count(None)
        return [rule for rule in held if rule is not None]

    def _bounded(self, rules: Sequence[Rule]) -> list[Rule]:
        """Of each kind the ones with the most evidence."""
        kept: list[Rule] = []
        for kind in KINDS:
            order = sorted((r for r in rules if r.kind == kind), key=lambda r: -len(r.evidence))
            kept += order[: self.settings.candidates]
        self.dropped["is one too many to test"] += len(rules) - len(kept)
        return kept

    async def _tested(self, rules: Sequence[Rule]) -> dict[Key, Sequence[Result]]:
        size = self.settings.rules_a_call
        room = self.found.room
        return dict(await tested(rules, self.found.trials, self.asker, room, rules_a_call=size))

    async def _chosen(self) -> list[Rule]:
        """The best of the rules that held; what says the same is made one once more."""
        held = [rule for key, rule in self.rules.items() if self.outcomes[key] == "kept"]
        distinct_rules = await merged(held, self.asker, lambda r: (self.separation(r).value,))
        self.merged += len(held) - len(distinct_rules)
        found = {rule.key: self.separation(rule) for rule in distinct_rules}
        chosen = best(distinct_rules, found)
        for rule in held:
            if rule.key not in found:
                self.outcomes[rule.key] = "says what another says"
        for rule in distinct_rules:
            self.rules[rule.key] = rule
            if rule.key not in {one.key for one in chosen}:
                self.outcomes[rule.key] = "not among the best"
        return chosen

    def _refuse_without(self, kinds: Collection[str]) -> None:
        missing = [k for k in ("reward", "penalty") if k not in kinds]
        if not missing:
            return
        what = " and no ".join(missing)
        why = (
            f"{len(self.rules)} rules were tested on {len(self.found.trials)} pairs of replies"
            if self.outcomes
            else f"of {self.proposed} proposed rules {len(self.rules)} had evidence that holds"
        )
        raise InputError(
            f"no rubric was induced for {self.found.user_id}: no {what} held ({why}); rate more "
            "replies, try another model with --model, or write the rubric by hand"
        )

    def _no_answer(self, what: str, why: str) -> ModelError:
        return ModelError(
            f"{self.asker.model.name} {what} of {self.found.user_id} that could be read ({why}); "
            "try another model with --model"
        )
