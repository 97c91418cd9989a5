"""The embedded model as a model like any other; its server starts at the first request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from palate.models.client import Completion, Model, Request
from palate.models.served import Serves
from palate.models.streaming import Show, streamed


class LocalModel:
    """Waits for the server that all roles share, then asks it.

    What the model can do is known before its server runs, because prompts depend on it.
    """

    reads_digits = True
    enforces_schema = True

    def __init__(self, name: str, start: Callable[[], Awaitable[Model]]) -> None:
        self.name = name
        self._start = start
        self._started: Model | None = None

    async def complete(self, request: Request) -> Completion:
        """See `palate.models.client.Model`.

        Raises:
            InputError: the runtime is not installed, or its weights cannot be had.
        """
        return await (await self._model()).complete(request)

    async def stream(self, request: Request, show: Show) -> Completion:
        """See `palate.models.streaming.Streams`; raises as `complete`."""
        return await streamed(await self._model(), request, show)

    async def asked(self, path: str, body: Mapping[str, object] | None = None) -> object:
        """See `palate.models.served.Serves`."""
        model = await self._model()
        return await model.asked(path, body) if isinstance(model, Serves) else None

    async def _model(self) -> Model:
        if self._started is None:
            self._started = await self._start()
        return self._started

    async def close(self) -> None:
        """Nothing to give back: the server belongs to the pool."""
