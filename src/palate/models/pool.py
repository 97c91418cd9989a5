"""All models of a run: opened by specification, with one limit per endpoint for all roles.

    async with Models(study_endpoints, study_dir=folder) as models:
        judge = models.open("openai:gpt-5.4")
        completion = await judge.complete(request)

Everything that can be wrong with a model's settings is found in `open`, before any call.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from yarl import URL

from palate.errors import InputError
from palate.models import anthropic_messages, openai_chat
from palate.models.client import Model
from palate.models.credentials import Headers, check_header_name, key_of, resolved
from palate.models.ledger import Counted, Ledger
from palate.models.local_model import LocalModel
from palate.models.remote import Address, RemoteModel
from palate.models.scripted import ScriptedModel
from palate.models.shapes import ShapeRules
from palate.models.spec import LOCAL_SLOTS, EndpointSettings, ModelSpec, settings_for
from palate.models.transport import Connections, Endpoint, Timing

if TYPE_CHECKING:
    from palate.models.local import LocalServer

# Cells under way where nothing but the machine bounds them: scripted models answer at once.
UNBOUNDED_WIDTH = 32
_OPENAI_HOSTS = re.compile(r"https://(api\.openai\.com|[\w-]+\.openai\.azure\.com)(/|\Z)")


class Models:
    """Opens models and owns what they share: connections, limits, the embedded server, the ledger.

    `endpoints` are the study's tables by URL; `max_concurrency` replaces the limit of every one
    of them. It belongs to one event loop, and is an async context manager.
    """

    def __init__(
        self,
        endpoints: Mapping[str, EndpointSettings],
        *,
        study_dir: Path,
        max_concurrency: int | None = None,
        timing: Timing = Timing(),
    ) -> None:
        self.ledger = Ledger()
        self._given = endpoints
        self._study_dir = study_dir
        self._max_concurrency = max_concurrency
        self._timing = timing
        self._connections = Connections()
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._scripts: dict[Path, ScriptedModel] = {}
        self._opened: list[Model] = []
        self._width: dict[str, int] = {}
        self._inspect_places: dict[str, asyncio.Semaphore] = {}
        self._adapters: dict[str, dict[Path, None]] = {}  # by embedded model, in order
        self._local: dict[tuple[str, tuple[Path, ...]], LocalServer] = {}
        self._starting = asyncio.Lock()

    def open(
        self,
        spec: str,
        *,
        headers: Mapping[str, str] | None = None,
        session_header: str | None = None,
        session_field: str | None = None,
        adapter: Path | None = None,
        scale: float = 1.0,
    ) -> Model:
        """The model that `spec` names, ready to be asked.

        `adapter` is a llama.cpp LoRA file that the embedded model answers through; other servers
        name adapters as models of their own. With `scale` 0 it is the base that answers, out of
        the server that holds the adapter. A header's value "env:NAME" is read from the
        environment. `session_header` and `session_field` say where a request's session id goes.

        Raises:
            InputError: the specification, a header, a key or a script is wrong or missing, or an
                adapter is given to what is not the embedded model.
        """
        parsed = ModelSpec.parse(spec)
        settings = self._settings(parsed)
        extra = resolved(spec, headers or {})
        if session_header is not None:
            check_header_name(spec, session_header)
        if adapter is not None and parsed.provider != "local":
            raise InputError(f"model {spec} takes no adapter file; its server names adapters")
        model: Model
        if parsed.provider == "scripted":
            model = Counted(self._scripted(spec, parsed), self.ledger)
        elif parsed.provider == "local":
            known = self._adapters.setdefault(parsed.model, {})
            if adapter is not None:
                known[adapter] = None
            model = LocalModel(spec, lambda: self._started(spec, parsed.model, adapter, scale))
        elif parsed.provider == "inspect":
            model = self._inspect(spec, parsed, settings)
        else:
            model = self._remote(spec, parsed, settings, extra, session_header, session_field)
        self._opened.append(model)
        return model

    def width(self) -> int:
        """How many calls the opened models take at once, all endpoints together; at least 1."""
        return max(sum(self._width.values()), 1)

    async def close(self) -> None:
        """Close every connection, and stop the embedded server."""
        opened, self._opened = self._opened, []
        for model in opened:
            await model.close()
        await self._connections.close()
        servers, self._local = self._local, {}
        for server in servers.values():
            await server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _settings(self, spec: ModelSpec) -> EndpointSettings:
        settings = settings_for(spec, self._given)
        if self._max_concurrency is not None:
            settings = settings.model_copy(update={"max_concurrency": self._max_concurrency})
        width = settings.max_concurrency
        if spec.provider == "scripted":
            width = UNBOUNDED_WIDTH
        elif spec.provider == "local":
            width = min(width, LOCAL_SLOTS)  # more chats than slots would push out their prefixes
        self._width[spec.endpoint] = width
        return settings

    def _scripted(self, name: str, spec: ModelSpec) -> ScriptedModel:
        path = self._study_dir / spec.model
        if path not in self._scripts:
            self._scripts[path] = ScriptedModel.read(name, path)
        return self._scripts[path]

    def _inspect(self, name: str, spec: ModelSpec, settings: EndpointSettings) -> Model:
        from palate.models.through_inspect import InspectModel

        places = self._inspect_places.setdefault(
            spec.endpoint, asyncio.Semaphore(settings.max_concurrency)
        )
        inspect = InspectModel.load(name, spec.model, places, settings.deadline_s)
        return Counted(inspect, self.ledger)

    def _remote(
        self,
        name: str,
        spec: ModelSpec,
        settings: EndpointSettings,
        headers: Headers,
        session_header: str | None,
        session_field: str | None,
    ) -> RemoteModel:
        key = key_of(name, spec, settings)
        wire, path = wire_of(spec, settings)
        given = {header.lower() for header in headers.values}
        usual = {"Content-Type": "application/json", **wire.headers(key)}
        own = {n: v for n, v in usual.items() if n.lower() not in given}
        address = Address(
            url=_url(name, spec.endpoint, path),
            base=spec.endpoint,
            headers={**own, **headers.values},
            secrets=(*headers.secrets, *([key] if key else [])),
            session_header=session_header,
            session_field=session_field,
        )
        place = (spec.provider, spec.endpoint)
        if place not in self._endpoints:
            self._endpoints[place] = self._endpoint(spec.endpoint, settings)
        rules = ShapeRules.of(settings, spec.provider)
        return RemoteModel(name, wire, address, self._endpoints[place], rules, self.ledger)

    def _endpoint(self, url: str, settings: EndpointSettings) -> Endpoint:
        return Endpoint(url, settings, self._connections, self._timing)

    async def _started(
        self, name: str, model: str, adapter: Path | None, scale: float
    ) -> RemoteModel:
        """The embedded `model` behind its server, which is started if it is not running.

        Adapters have a server of their own, started with all opened so far: what else is asked of
        the base keeps its cache of prompts, which adapters may not have (docs/adr/0009).
        """
        from palate.models import local

        async with self._starting:
            adapters = () if adapter is None else tuple(self._adapters[model])
            if (model, adapters) not in self._local:
                self._local[model, adapters] = await local.start(model, adapters)
            server = self._local[model, adapters]
        settings = server.settings
        if self._max_concurrency is not None:
            lower = min(self._max_concurrency, server.max_concurrency)
            settings = settings.model_copy(update={"max_concurrency": lower})
        place = ("local", server.base_url)
        if place not in self._endpoints:
            self._endpoints[place] = self._endpoint(server.base_url, settings)
        wire = openai_chat.OpenAIChat(
            model,
            json_schema=settings.json_schema,
            digits=settings.digits,
            extra_body=server.body(adapter, scale),
        )
        address = Address(
            url=_url(name, server.base_url, openai_chat.PATH),
            base=server.base_url,
            headers={"Content-Type": "application/json"},
        )
        rules = ShapeRules.of(settings, "local")
        return RemoteModel(name, wire, address, self._endpoints[place], rules, self.ledger)


def wire_of(
    spec: ModelSpec, settings: EndpointSettings
) -> tuple[openai_chat.OpenAIChat | anthropic_messages.AnthropicMessages, str]:
    """How a model's API is spoken, and the path of a call below the base URL."""
    if spec.provider == "anthropic":
        wire = anthropic_messages.AnthropicMessages(spec.model)
        return wire, anthropic_messages.path(spec.endpoint)
    newer = _OPENAI_HOSTS.match(spec.endpoint) is not None
    usual = "max_completion_tokens" if newer else "max_tokens"
    chat = openai_chat.OpenAIChat(
        spec.model,
        json_schema=settings.json_schema,
        digits=settings.digits,
        max_tokens_field=settings.max_tokens_field or usual,
    )
    return chat, openai_chat.PATH


def _url(name: str, base: str, path: str) -> URL:
    try:
        return URL(base + path)
    except ValueError as error:
        raise InputError(f"model {name}: {base} is not a web address ({error})") from None
