"""Before the first call: does every adapter change what its base says, and is it served as trained?

A server may take an adapter's name and answer with the base alone, and then all people are
simulated alike while nothing fails. So fixed prompts are put at temperature 0 to the base and to
each adapter, until one tells them apart; and where the server says what it makes of a conversation,
that is held against what training made of it. What could not be looked at is a warning, never a
pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from palate.config import UserSection
from palate.errors import InputError, RequestRefused, Stopped, TransportError
from palate.models.client import ChatMessage, Completion, Model, Purpose, Request
from palate.models.pool import Models
from palate.models.served import Listed, listed, rendered
from palate.models.shapes import ShapeRules, shape
from palate.models.spec import ModelSpec
from palate.probed import Compared, Form, Probed
from palate.seats import open_simulator
from palate.simulators import Simulator
from palate.simulators.lora_prompt import lora_system
from palate.simulators.prompt_form import PROBE, differing_form, differing_tokens
from palate.simulators.simulator import adapter_sha256
from palate.simulators.trained import Trained
from palate.types import Scene

PROMPTS = ("hi", "what now?", "*waits*", "你好", "tell me more", "ok")
# Of the first token's log-probability, in nats. One prompt asked twice, in batches of other sizes,
# was at most 0.03 apart; adapters that were trained at all are tenths of a nat to several away.
LEAST_DIFFERENCE = 0.1
_LIKELY = -3.0  # a log-probability, of about 5 %
_NEVER = -50.0  # servers write -inf or a large number for what cannot come
_TOP = 5
_WORDS = 24  # tokens of an answer where texts are compared


class _Found(NamedTuple):
    compared: Compared
    prompts: int
    difference: float | None
    warning: str | None


async def probe_adapters(
    simulators: Mapping[str, Simulator], users: Sequence[UserSection], models: Models
) -> tuple[Probed, ...]:
    """Check every trained simulator of `users`; others have nothing to check.

    Raises:
        InputError: an adapter has no effect, is served in another form than it was trained in, or
            the server refuses it.
        Stopped: a server gave no answer.
    """
    # All first: the embedded server starts with the adapters that are open by then.
    opened = [
        (user, simulator, open_simulator(simulator, user, models))
        for user in users
        if (simulator := simulators[user.id]).trained is not None
    ]
    answers = _Answers()
    found = []
    for user, simulator, adapter in opened:
        try:
            found.append(await _Probe(user, simulator, adapter, models, answers).result())
        except TransportError as error:
            raise Stopped(
                f"the adapter of user {user.id} could not be checked: {error}; once its server "
                "answers, the same command takes the work up"
            ) from None
        except RequestRefused as error:
            raise InputError(
                f"the adapter of user {user.id} could not be checked: {error}; see that the server "
                "has it under this name (`palate simulator serve` starts one that has)"
            ) from None
    return tuple(found)


class _Answers:
    """What bases said: adapters of one base on one server are held against the same answers."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Completion] = {}

    async def of(self, base: Model, request: Request) -> Completion:
        key = (base.name, repr(request))
        if key not in self._known:
            self._known[key] = await _ask(base, request)
        return self._known[key]


class _Probe:
    """The check of one user's adapter."""

    def __init__(
        self,
        user: UserSection,
        simulator: Simulator,
        adapter: Model,
        models: Models,
        answers: _Answers,
    ) -> None:
        assert simulator.trained is not None
        self.user = user
        self.simulator = simulator
        self.trained: Trained = simulator.trained
        self.adapter = adapter
        self.models = models
        self.answers = answers
        self.spec = ModelSpec.parse(simulator.model)

    async def result(self) -> Probed:
        form, about_form = await self._form()
        base, about_base = await self._base()
        found = await (self._only_asked() if base is None else self._compared(base))
        said = (about_form, about_base, found.warning)
        return Probed(
            user_id=self.user.id,
            model=self.simulator.model,
            base=base.name if base else None,
            adapter=adapter_sha256(self.trained),
            compared=found.compared,
            prompts=found.prompts,
            difference=found.difference,
            form=form,
            warnings=tuple(one for one in said if one),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    async def _form(self) -> tuple[Form, str | None]:
        """What the server makes of the fixed conversation; raises where training made another."""
        form = self.trained.record.prompt_form
        messages = shape(PROBE, ShapeRules(first_role=form.first_role)).messages
        made = await rendered(self.adapter, self.spec.model, messages, form.template_arguments)
        differs = None
        if made.tokens is not None:
            differs = differing_tokens(form, made.tokens)
        if made.text is not None and (differs or made.tokens is None):
            differs = differing_form(form, made.text) or differs  # words say more than numbers
        if differs:
            raise InputError(f"user {self.user.id}, {self.simulator.model}: {differs}")
        if made.tokens is None and made.text is None:
            return "unknown", self._warning(
                "its server does not say what it makes of a conversation, so whether it is served "
                "in the form that it was trained in was not checked"
            )
        return ("text" if made.tokens is None else "tokens"), None

    async def _base(self) -> tuple[Model | None, str | None]:
        """The base alone, and what is to be said of it."""
        record = self.trained.record.base
        if self.spec.provider == "local":
            return self.models.open(
                self.simulator.model, adapter=self.trained.gguf, scale=0.0
            ), None
        if self.spec.provider != "openai":
            return None, self._warning(f"{self.spec.provider} models have no adapter to check")
        models = await listed(self.adapter)
        name = self.user.simulator.base or _base_name(models, self.spec.model, record.name)
        if name is None:
            return None, self._warning(
                "its server does not say under which name it has the base model, so whether the "
                'adapter changes anything was not checked; add base = "NAME" to the simulator'
            )
        spec = self.spec.model_copy(update={"model": name})
        base = self.models.open(str(spec), headers=self.user.simulator.headers)
        held = next((one.root for one in models if one.name == name and one.root), name)
        if record.name in (held, name):
            return base, None
        return base, self._warning(
            f"its server names {held!r} as the base, and it was trained on {record.name!r}: see "
            "that these are the same weights"
        )

    async def _only_asked(self) -> _Found:
        """Without a base nothing is told, but that the server has the adapter and answers."""
        if self.spec.provider == "openai":
            await _ask(self.adapter, self._request(0, by_texts=True))
        return _Found("nothing", 0, None, None)

    async def _compared(self, base: Model) -> _Found:
        """Adapter against base on fixed prompts, to the first that tells them apart."""
        one_of_them = await self.answers.of(base, self._request(0))
        by_texts = not one_of_them.first_token
        unsteady = False
        for number in range(len(PROMPTS)):
            request = self._request(number, by_texts=by_texts)
            of_base = await self.answers.of(base, request)
            of_adapter = await _ask(self.adapter, request)
            if not by_texts:
                apart = largest_difference(of_base.first_token, of_adapter.first_token)
                if apart >= LEAST_DIFFERENCE:
                    return _Found("log_probabilities", number + 1, round(apart, 3), None)
            elif of_base.text != of_adapter.text:
                # A server whose answers vary by themselves would pass an adapter that it ignores.
                if (await _ask(base, request)).text == of_base.text:
                    return _Found("texts", number + 1, None, None)
                unsteady = True
        if unsteady:
            return _Found(
                "texts",
                len(PROMPTS),
                None,
                self._warning(
                    "its base does not answer twice alike at temperature 0, so whether the adapter "
                    "changes anything could not be told"
                ),
            )
        raise InputError(
            f"user {self.user.id}: adapter has no effect: all {len(PROMPTS)} fixed prompts are "
            f"answered by {self.simulator.model} as by its base {base.name}; see that the server "
            f"holds the adapter in {self.trained.folder} and that its layers are the base's, or "
            "train it again"
        )

    def _request(self, number: int, *, by_texts: bool = False) -> Request:
        scene = Scene(self.trained.record.language, "Wren", "", "Ada")
        cold = replace(
            self.simulator.sampling,
            temperature=0.0,
            top_p=None,
            stop=(),
            max_tokens=_WORDS if by_texts else 1,
        )
        return Request(
            messages=(
                ChatMessage("system", lora_system(scene)),
                ChatMessage("user", PROMPTS[number]),
            ),
            sampling=cold,
            purpose=Purpose("simulator", "probe", number),
            first_token=0 if by_texts else _TOP,
        )

    def _warning(self, what: str) -> str:
        return f"The adapter of {self.user.id} ({self.simulator.model}): {what}."


async def _ask(model: Model, request: Request) -> Completion:
    """The answer; without log-probabilities where the server refuses to give them."""
    try:
        return await model.complete(request)
    except RequestRefused:
        if not request.first_token:
            raise
        return await model.complete(replace(request, first_token=0))


def _base_name(models: Sequence[Listed], adapter: str, trained_on: str) -> str | None:
    """The name under which the server has the base of `adapter`, where its list tells."""
    own = next((one for one in models if one.name == adapter), None)
    if own is not None and own.parent:
        return own.parent
    bases = [one for one in models if not one.parent and one.name != adapter]
    same = [one.name for one in bases if trained_on in (one.name, one.root)]
    if len(same) == 1:
        return same[0]
    return bases[0].name if len(bases) == 1 else None


def largest_difference(
    some: Sequence[tuple[str, float]], others: Sequence[tuple[str, float]]
) -> float:
    """The largest difference of a token's log-probability between two lists of the likeliest.

    In nats, at least 0, over the tokens that either list has at 5 % or more, or as its likeliest:
    rarer ones are rounded to other values in other batches (0.14 nats were seen). A token that one
    list lacks has at most the least of that list, so the difference is a lower bound.
    """
    if not some or not others:
        return 0.0
    one, other = dict(some), dict(others)
    counted = {t for given in (one, other) for t, p in given.items() if p >= _LIKELY}
    counted |= {max(given, key=lambda t: given[t]) for given in (one, other)}
    floors = min(one.values()), min(other.values())
    return max(abs(_of(one, t, floors[0]) - _of(other, t, floors[1])) for t in counted)


def _of(given: Mapping[str, float], token: str, floor: float) -> float:
    return max(given.get(token, floor), _NEVER)
