"""What makes a run itself: every setting and the digest of every text that a result depends on.

A run folder keeps this in its manifest and refuses to go on under another one, with the difference
named; so results of two studies, or of two versions of a prompt, are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterator

from palate import __version__, cards
from palate.config import (
    CandidateSection,
    JudgeSection,
    Protocol,
    SimulatorSection,
    UserSection,
)
from palate.judging.fingerprint import fingerprint
from palate.judging.questions import prompt_digest
from palate.judging.transcript import card_text
from palate.models import shapes
from palate.models.client import Role
from palate.models.spec import ModelSpec, settings_for
from palate.prepare import Prepared, judge_form, prices, sampling
from palate.prompts import load, sheet
from palate.roleplay import ATTEMPTS_AT_A_MESSAGE
from palate.rubrics.shared import load_shared
from palate.simulators import HYGIENE_RULES
from palate.store import Json
from palate.types import TRACKS, Card, Cell, digest

# Endpoint settings that change what is sent or read; the others only change how fast.
SHAPING = ("system_role", "first_role", "alternate", "max_system", "json_schema", "digits")


def settings(prepared: Prepared) -> Json:
    """What makes this run this run; only runs with equal settings may share a folder."""
    content = prepared.study.content
    return {
        "name": content.study.name,
        **_described_protocol(content.protocol),
        "attempts_at_a_message": ATTEMPTS_AT_A_MESSAGE,
        "helper_user_line": shapes.HELPER_USER_LINE,
        "judge": {
            "form": judge_form(prepared.study),
            **_described(prepared, "judge", content.judge),
        },
        "users": {user.id: _described_user(prepared, user) for user in content.users},
        "candidates": {c.name: _described_candidate(prepared, c) for c in content.candidates},
        "cards": {id_: _described_card(prepared, card) for id_, card in prepared.cards.items()},
        "rubrics": {
            f"{track}_sha256": load_shared(track).digest() for track in ("generic", "session")
        },
        "prompts": {f"{name}_sha256": sha256 for name, sha256 in _prompts(prepared).items()},
    }


def about(prepared: Prepared, *, run_id: str, created_at: str) -> Json:
    """What a report needs to know of the run besides its settings."""
    content = prepared.study.content
    return {
        "palate_version": __version__,
        "run_id": run_id,
        "created_at": created_at,
        "cards": {
            id_: {"name": cards.nickname(card), "language": card.language}
            for id_, card in prepared.cards.items()
        },
        "openings": dict(_openings(prepared)),
        "message_forms": {c.name: _message_form(prepared, c) for c in content.candidates},
        "prices": {
            model: price.model_dump(mode="json") for model, price in prices(prepared.study).items()
        },
        "warnings": list(prepared.warnings()),
    }


def _described_protocol(protocol: Protocol) -> Json:
    """The protocol, and by which rules messages are drawn anew.

    Where none is drawn anew neither is named, so that a run begun before there was `resample` can
    be finished with `resample = 0`.
    """
    written: Json = protocol.model_dump(mode="json")
    if not written["resample"]:
        del written["resample"]
        return {"protocol": written}
    return {"protocol": written, "hygiene_rules": HYGIENE_RULES}


def _openings(prepared: Prepared) -> Iterator[tuple[str, str]]:
    """By USER/CARD; of a card with dice also by USER/CARD/REPETITION, as its cells have them."""
    protocol = prepared.study.content.protocol
    for user in prepared.study.content.users:
        for id_, card in prepared.cards.items():
            yield f"{user.id}/{id_}", cards.opening(card, user_name=user.name)
            if cards.draws_from_dice(card):
                for number in range(1, protocol.repetitions + 1):
                    cell = Cell(user.id, id_, "", number)  # candidates share their openings
                    dice = cards.dice(card, seed=protocol.seed, cell=cell)
                    yield (
                        f"{user.id}/{id_}/{number}",
                        cards.opening(card, user_name=user.name, dice=dice),
                    )


def _described_card(prepared: Prepared, card: Card) -> Json:
    """A card's digest; of a lorebook and of dice also what our rules for them make of it."""
    described: Json = {"sha256": card.digest()}
    lore = cards.known_lore(card)
    if lore:
        shown = card_text(card, "session", judge_form(prepared.study), lore)
        described |= {"lore_rules": cards.LORE_RULES, "lore_sha256": digest(shown)}
    if cards.draws_from_dice(card):
        # Of the draw that belongs to no cell: it changes with the text and the rule alone.
        described["opening_sha256"] = digest(cards.opening(card))
    return described


def _described_user(prepared: Prepared, user: UserSection) -> Json:
    simulator = prepared.simulators[user.id]
    record = simulator.record()
    section = user.simulator.model_copy(update={"model": simulator.model})
    described = _described(prepared, "simulator", section)
    return {
        "name": user.name,
        "simulator": {
            "kind": simulator.kind,
            # What goes out with an adapter is more than the study says: the template's arguments.
            **described | {"body": simulator.sampling.body},
            "profile_sha256": record.profile,
            **({"adapter_sha256": record.adapter} if record.adapter else {}),
            "told_sha256": digest(
                [
                    simulator.system(cards.scene(card, user_name=user.name))
                    for card in prepared.cards.values()
                ]
            ),
        },
        "rubric_sha256": prepared.rubrics[user.id].sha256,
    }


def _described_candidate(prepared: Prepared, candidate: CandidateSection) -> Json:
    own = prepared.own_prompts.get(candidate.name)
    return {
        **_described(prepared, "candidate", candidate),
        "prompt": candidate.prompt,
        "prompt_sha256": own.sha256 if own else None,
        "told_sha256": _told(prepared, candidate),
        "history": candidate.sends,
        "session_header": candidate.session_header,
        "session_field": candidate.session_field,
    }


def _told(prepared: Prepared, candidate: CandidateSection) -> str | None:
    """The digest of all system prompts of a candidate as they go out, names filled in."""
    if candidate.prompt == "none":
        return None
    own = prepared.own_prompts.get(candidate.name)
    return digest(
        [
            cards.candidate_prompt(card, user_name=user.name, prompt=own)
            for user in prepared.study.content.users
            for card in prepared.cards.values()
        ]
    )


def _described(
    prepared: Prepared, role: Role, section: JudgeSection | SimulatorSection | CandidateSection
) -> Json:
    """A model, its decoding with our defaults, and what its endpoint changes in a request.

    Headers hold no secrets (`palate.config`).
    """
    assert section.model is not None  # refused without it, or filled in
    sent = sampling(role, section)
    endpoint = settings_for(ModelSpec.parse(section.model), prepared.study.content.endpoints)
    return {
        "model": section.model,
        "temperature": sent.temperature,
        "top_p": sent.top_p,
        "max_tokens": sent.max_tokens,
        "stop": list(sent.stop),
        "headers": dict(section.headers),
        "body": sent.body,
        "endpoint": endpoint.model_dump(mode="json", include=set(SHAPING)),
    }


def _prompts(prepared: Prepared) -> dict[str, str]:
    """The packaged prompts that this study uses, as NAME.LANGUAGE, with their SHA-256."""
    languages = sorted({card.language for card in prepared.cards.values()})
    kinds = sorted({user.simulator.kind for user in prepared.study.content.users})
    names = [f"simulator_{kind}" for kind in kinds]
    names += ["candidate_instructions", "candidate_card"]
    form = judge_form(prepared.study)
    found = {
        f"{name}.{tongue}": load(name, tongue).sha256 for name in names for tongue in languages
    }
    found |= {
        f"judge_{track}.{tongue}": prompt_digest(track, tongue, form)
        for track in TRACKS
        for tongue in languages
    }
    for tongue in languages:
        found[f"judge_session_summary.{tongue}"] = sheet("judge_session_summary", tongue).sha256
        found[f"judge_words.{tongue}"] = fingerprint(tongue, form)
    return found


def _message_form(prepared: Prepared, candidate: CandidateSection) -> str:
    spec = ModelSpec.parse(candidate.model)
    form = shapes.form(settings_for(spec, prepared.study.content.endpoints), spec.provider)
    return f"{form}, newest message only" if candidate.sends == "last" else form
