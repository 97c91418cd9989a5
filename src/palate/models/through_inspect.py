"""Models of providers that palate does not speak itself, through the optional package inspect_ai.

`inspect:google/gemini-3-pro` is Inspect's model "google/gemini-3-pro". Keys, connection limits
and retries are Inspect's own; palate's limit for the model applies on top.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from palate.errors import InputError, TransportError
from palate.models.answers import spoken
from palate.models.client import ChatMessage, Completion, Request, Sampling
from palate.models.faults import one_line
from palate.types import Usage

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage as InspectMessage
    from inspect_ai.model import GenerateConfig, Model, ModelOutput

_BLOCKED = ("content_filter",)
_CUT = ("max_tokens", "model_length")


class InspectModel:
    """One model of Inspect AI; it has no digit probabilities and no schema."""

    reads_digits = False
    enforces_schema = False

    def __init__(
        self, name: str, model: Model, places: asyncio.Semaphore, deadline_s: float
    ) -> None:
        self.name = name
        self._model = model
        self._places = places
        self._deadline_s = deadline_s

    @classmethod
    def load(
        cls, name: str, model: str, places: asyncio.Semaphore, deadline_s: float
    ) -> InspectModel:
        """The model that Inspect calls `model`.

        Raises:
            InputError: inspect_ai is not installed, or knows no such model or no key for it.
        """
        try:
            from inspect_ai.model import get_model
        except ImportError:
            raise InputError(
                f"model {name} needs the package inspect_ai: pip install 'palate[inspect]'"
            ) from None
        try:
            return cls(name, get_model(model), places, deadline_s)
        except Exception as error:  # whatever the provider's package raises at its set-up
            raise InputError(f"model {name} cannot be set up: {one_line(str(error))}") from None

    async def complete(self, request: Request) -> Completion:
        """See `palate.models.client.Model`."""
        async with self._places:
            began = time.monotonic()
            try:
                async with asyncio.timeout(self._deadline_s):
                    output = await self._model.generate(
                        _messages(request.messages), config=_config(request.sampling)
                    )
            except TimeoutError:
                raise TransportError(
                    f"{self.name}: no answer within {self._deadline_s:g} s"
                ) from None
            except Exception as error:  # providers raise their own packages' errors
                raise TransportError(f"{self.name}: {one_line(str(error))}") from None
        if output.error and output.stop_reason not in (*_BLOCKED, *_CUT):
            raise TransportError(f"{self.name}: {one_line(output.error)}")
        return _completion(output, time.monotonic() - began)

    async def close(self) -> None:
        """Give back Inspect's connections."""
        await self._model.api.aclose()


def _messages(messages: Sequence[ChatMessage]) -> list[InspectMessage]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
    return [kinds[message.role](content=message.text) for message in messages]


def _config(sampling: Sampling) -> GenerateConfig:
    from inspect_ai.model import GenerateConfig

    return GenerateConfig(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        seed=sampling.seed,
        stop_seqs=list(sampling.stop) or None,
        extra_body=sampling.body or None,
    )


def _completion(output: ModelOutput, latency_s: float) -> Completion:
    text, reasoning = _content(output)
    result = spoken(
        text,
        reasoning,
        refused=output.stop_reason in _BLOCKED,
        cut=output.stop_reason in _CUT,
    )
    return Completion(*result, model=output.model, usage=_usage(output), latency_s=latency_s)


def _content(output: ModelOutput) -> tuple[str, str]:
    if output.empty:
        return "", ""
    content = output.message.content
    if isinstance(content, str):
        return content, ""
    said = "".join(part.text for part in content if part.type == "text")
    thought = "\n".join(part.reasoning for part in content if part.type == "reasoning")
    return said, thought


def _usage(output: ModelOutput) -> Usage:
    """Inspect counts tokens read from and written to a cache beside the input's."""
    usage = output.usage
    if usage is None:
        return Usage()
    cached = usage.input_tokens_cache_read or 0
    written = usage.input_tokens_cache_write or 0
    return Usage(usage.input_tokens + cached + written, usage.output_tokens, cached)
