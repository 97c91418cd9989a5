"""Anthropic's messages API, with its prompt cache for prefixes that many calls share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palate.models.answers import Answer, Malformed, count, spoken, text
from palate.models.client import ChatMessage, Request
from palate.models.shapes import Shaped
from palate.models.streaming import Event
from palate.types import Usage

VERSION = "2023-06-01"

_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})
_CACHE = {"type": "ephemeral"}


def path(base_url: str) -> str:
    """The call's path: the base URL may or may not end with the API's version."""
    return "/messages" if base_url.endswith("/v1") else "/v1/messages"


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """Writes requests and reads answers of one model. The API has no seed and no schema."""

    model: str

    def headers(self, key: str | None) -> dict[str, str]:
        """The version's header, and the key's if there is one."""
        headers = {"anthropic-version": VERSION}
        return {**headers, "x-api-key": key} if key else headers

    def body(self, request: Request, shaped: Shaped) -> dict[str, object]:
        """The request's JSON object, before the fields of its `Sampling.body`.

        `Request.cache_prefix` becomes cache marks: on the system text, and on the last message of
        the prefix if that message went out as it was.
        """
        sampling = request.sampling
        marked = _marked(request)
        body: dict[str, object] = {
            "model": self.model,
            "messages": [_message(m, cached=m is marked) for m in shaped.messages],
            "max_tokens": sampling.max_tokens,
        }
        if shaped.system:
            body["system"] = [_block(shaped.system, cached=request.cache_prefix > 0)]
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        if sampling.stop:
            body["stop_sequences"] = list(sampling.stop)
        return body

    def read(self, value: object, request: Request) -> Answer:
        """The answer in a response of HTTP 200.

        Raises:
            Malformed: an error in place of an answer, or no content list in it.
        """
        if not isinstance(value, dict):
            raise Malformed("is no JSON object")
        if value.get("error"):
            error = value["error"]
            said = error.get("message", error) if isinstance(error, dict) else error
            raise Malformed(f"is an error: {said}")
        content = value.get("content")
        if not isinstance(content, list):
            raise Malformed("has no message in it")
        blocks = [block for block in content if isinstance(block, dict)]
        stop = text(value.get("stop_reason"))
        result = spoken(
            "".join(text(b.get("text")) for b in blocks if b.get("type") == "text"),
            "\n".join(filter(None, map(_thought, blocks))),
            refused=stop == "refusal",
            cut=stop in _CUT,
        )
        return Answer(*result, text(value.get("model")), _usage(value.get("usage")))

    def delta(self, event: Event) -> str:
        """See `palate.models.remote.Wire`."""
        return text(_part(event, "delta").get("text"))

    def joined(self, events: Sequence[Event]) -> Event:
        """See `palate.models.remote.Wire`."""
        said = "".join(map(self.delta, events))
        thought = "".join(text(_part(event, "delta").get("thinking")) for event in events)
        content = [{"type": "thinking", "thinking": thought}, {"type": "text", "text": said}]
        whole: dict[str, object] = {"content": content}
        usage: dict[str, object] = {}
        for event in events:
            message, change = _part(event, "message"), _part(event, "delta")
            usage |= {**_part(message, "usage"), **_part(event, "usage")}
            whole |= {"model": message["model"]} if "model" in message else {}
            whole |= {"stop_reason": change["stop_reason"]} if change.get("stop_reason") else {}
            whole |= {"error": event["error"]} if event.get("error") else {}
        return {**whole, "usage": usage}


def _part(event: Event, name: str) -> Event:
    part = event.get(name)
    return part if isinstance(part, dict) else {}


def _marked(request: Request) -> ChatMessage | None:
    if not 0 < request.cache_prefix <= len(request.messages):
        return None
    return request.messages[request.cache_prefix - 1]


def _message(message: ChatMessage, *, cached: bool) -> dict[str, object]:
    if not cached:
        return {"role": message.role, "content": message.text}
    return {"role": message.role, "content": [_block(message.text, cached=True)]}


def _block(content: str, *, cached: bool) -> dict[str, object]:
    block: dict[str, object] = {"type": "text", "text": content}
    return {**block, "cache_control": _CACHE} if cached else block


def _thought(block: dict[str, object]) -> str:
    if block.get("type") == "redacted_thinking":
        return "[redacted by the provider]"
    return text(block.get("thinking")) if block.get("type") == "thinking" else ""


def _usage(usage: object) -> Usage:
    """Anthropic counts the tokens read from and written to its cache beside the input's."""
    if not isinstance(usage, dict):
        return Usage()
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    fresh = count(usage.get("input_tokens"))
    return Usage(fresh + written + cached, count(usage.get("output_tokens")), cached)
