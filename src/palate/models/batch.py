"""Models whose calls go through batch files: answered from responses, or written down for later.

    async with BatchFolder(folder, study.content.endpoints, scope="agreement") as models:
        judge = models.open("openai:gpt-5.4")     # in the place of `Models(...)`
        ...                                       # a call without an answer raises LeftToBatch
    models.raise_if_left()                        # Stopped: exit code 3

A stage runs in rounds, by the same command: what it asks without an answer stands in request files
afterwards; responses put into the folder are read the next time. A question that needs the answer
to another (a verdict asked for again, a long session in parts) comes in a later round.

What goes into a file is byte for byte the body that a direct call would have sent, and an answer
is read by the same code. A request is known by a digest of its body, of the call it belongs to
(`Purpose`) and of the scope: equal questions about different things never share an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from palate.errors import InputError, LeftToBatch, PalateError, Stopped
from palate.models.answers import Answer, Malformed, encoded
from palate.models.batch_files import PATTERN, RequestFiles
from palate.models.batch_responses import Response, Responses
from palate.models.client import Completion, Purpose, Request
from palate.models.ledger import Ledger
from palate.models.pool import wire_of
from palate.models.remote import body_of
from palate.models.shapes import ShapeRules
from palate.models.spec import EndpointSettings, ModelSpec, settings_for
from palate.types import digest

PREFIX = "palate-"
WIDTH = 16  # questions under way: nothing is waited for, but all of them are in memory
_MOST_REASONS = 5

Leave = Callable[[str, bytes, str], None]
Keep = Callable[[Response], None]


class Batch:
    """One round: what was answered, and what is left, by the ids of the requests.

    `leave` is given each request without an answer, once: its id, its body, and the model's name.
    `keep` is given each answer that is used.
    """

    def __init__(
        self,
        responses: Responses,
        leave: Leave,
        *,
        scope: str,
        keep: Keep = lambda response: None,
    ) -> None:
        self.responses = responses
        self.answered: set[str] = set()
        self.left: set[str] = set()
        self.malformed: dict[str, str] = {}  # answers of HTTP 200 that hold none
        self._leave = leave
        self._keep = keep
        self._scope = scope

    def custom_id(self, model: str, purpose: Purpose, body: bytes) -> str:
        """What a request is known by: at most 64 characters, without a name of anybody."""
        known = digest([self._scope, model, list(purpose), sha256(body).hexdigest()])
        return f"{PREFIX}{known[:40]}-{purpose.attempt}"

    def answers(self, custom_id: str) -> Iterator[Response]:
        """The answers to a request, the first first."""
        return self.responses.of(custom_id)

    def used(self, custom_id: str, response: Response) -> None:
        """An answer was taken."""
        if custom_id not in self.answered:
            self.answered.add(custom_id)
            self._keep(response)

    def leave(self, custom_id: str, body: bytes, model: str) -> None:
        """A request has no answer."""
        if custom_id not in self.left:
            self.left.add(custom_id)
            self._leave(custom_id, body, model)

    def remarks(self, known: Set[str] = frozenset()) -> Iterator[str]:
        """What a person must know of the responses; `known` are ids answered in earlier rounds."""
        responses = self.responses
        failed = responses.reasons(self.left) + Counter(self.malformed.values())
        if failed:
            shown = [f"{why} ({number})" for why, number in failed.most_common(_MOST_REASONS)]
            more = "; …" if len(failed) > _MOST_REASONS else ""
            yield (
                f"requests that came back without an answer, to be asked again: {failed.total()}: "
                f"{'; '.join(shown)}{more}"
            )
        strange = (responses.ids() | set(responses.failed)) - self.answered - self.left - known
        if strange:
            yield f"responses that belong to nothing missing here, ignored: {len(strange)}"
        if responses.differing:
            yield (
                "requests answered again, differently; the first answer counts: "
                f"{responses.differing}"
            )
        if responses.repeated:
            yield f"responses that were there twice: {responses.repeated}"
        left_out = responses.damaged + responses.torn
        if left_out:
            torn = f", torn at the end of a file: {responses.torn}" if responses.torn else ""
            yield f"lines that are no responses, left out: {left_out}{torn}"


class BatchModel:
    """A model of one endpoint that is asked through files; see the module.

    Raises:
        InputError: it is not one whose requests have the form of a batch file, or its settings
            are wrong.
    """

    def __init__(
        self, name: str, batch: Batch, endpoints: Mapping[str, EndpointSettings], ledger: Ledger
    ) -> None:
        spec = ModelSpec.parse(name)
        if spec.provider != "openai":
            raise InputError(
                f"model {name} cannot be asked through batch files, which hold chat completions of "
                "OpenAI's form; name an openai: model, or ask it directly"
            )
        settings = settings_for(spec, endpoints)
        self.name = name
        self.reads_digits = settings.digits != "none"
        self.enforces_schema = settings.json_schema
        self._batch = batch
        self._wire, _ = wire_of(spec, settings)
        self._rules = ShapeRules.of(settings, spec.provider)
        self._ledger = ledger

    async def complete(self, request: Request) -> Completion:
        """See `palate.models.client.Model`.

        Raises:
            LeftToBatch: there is no answer yet; the request is written down.
        """
        body = encoded(body_of(request, self._wire, self._rules))
        custom_id = self._batch.custom_id(self.name, request.purpose, body)
        for response in self._batch.answers(custom_id):
            try:
                answer = self._wire.read(response.body, request)
            except Malformed as fault:
                self._batch.malformed[custom_id] = f"the answer {fault}"
                continue
            self._batch.malformed.pop(custom_id, None)
            self._batch.used(custom_id, response)
            self._ledger.answered(request.purpose.role, self.name, answer.usage)
            return _completion(answer)
        self._batch.leave(custom_id, body, self.name)
        raise LeftToBatch(f"{self.name}: the call is left to a batch")

    async def close(self) -> None:
        """Nothing is open."""


def _completion(answer: Answer) -> Completion:
    return Completion(
        text=answer.text,
        status=answer.status,
        reasoning=answer.reasoning,
        model=answer.model,
        usage=answer.usage,
        digit_probabilities=answer.digit_probabilities,
        first_token=answer.first_token,
    )


class BatchFolder:
    """Stands in for `palate.models.pool.Models`: opens models that are asked through `folder`.

    All files of the folder that end in .jsonl or .jsonl.gz are read as responses, but for the
    request files that it writes itself when it is left. Headers, keys and adapters have no place
    in a batch file: `headers` are not looked at. `scope` tells one stage from another: each has
    request files of its own.

    Raises:
        InputError: a file in the folder cannot be read as responses.
    """

    def __init__(
        self, folder: Path, endpoints: Mapping[str, EndpointSettings], *, scope: str
    ) -> None:
        self.folder = folder
        self.ledger = Ledger()
        self._endpoints = endpoints
        self._responses = Responses(response_files(folder))
        self._files = RequestFiles(folder, stage=digest(scope)[:8])
        self._batch = Batch(self._responses, self._files.add, scope=scope)

    def open(
        self,
        spec: str,
        *,
        headers: Mapping[str, str] | None = None,
        session_header: str | None = None,
        session_field: str | None = None,
        adapter: Path | None = None,
    ) -> BatchModel:
        """The model that `spec` names; raises `InputError` where it cannot be asked by files."""
        if adapter is not None or session_header is not None or session_field is not None:
            raise InputError(
                f"model {spec} is asked with an adapter or a session id, which no batch file can "
                "hold; ask it directly"
            )
        return BatchModel(spec, self._batch, self._endpoints, self.ledger)

    @property
    def pending(self) -> int:
        """Requests of this round that have no answer."""
        return len(self._batch.left)

    def width(self) -> int:
        """How many questions are asked at once."""
        return WIDTH

    def remarks(self) -> tuple[str, ...]:
        """What a person must know of the responses, a sentence each."""
        return tuple(self._batch.remarks())

    def raise_if_left(self) -> None:
        """Say that another round is needed, and where its requests are.

        Raises:
            Stopped: requests were left.
        """
        if not self.pending:
            return
        files = ", ".join(path.name for path in self._files.files)
        raise Stopped(
            f"requests left to a batch: {self.pending}, in {self.folder} ({files}); put what the "
            "batch service gives back into that folder, then give the same command again"
        )

    async def close(self) -> None:
        """Close the response files; request files are written when the context is left."""
        self._responses.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
        # A stage that gave up because nothing came back has asked all the same.
        expected = kind is None or issubclass(kind, PalateError)
        self._files.__exit__(None if expected else kind, error, trace)


def response_files(folder: Path) -> Sequence[Path]:
    """The response files of a folder, in the order of their names."""
    if not folder.is_dir():
        return ()
    ours = set(folder.glob(PATTERN))
    found = {*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")}
    return sorted(path for path in found - ours if not path.name.startswith("."))
