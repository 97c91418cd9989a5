"""OpenAI-compatible chat completions: OpenAI, vLLM, llama.cpp, DeepSeek, Qwen, GLM and the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PureWindowsPath

from palate.models.answers import Answer, Malformed, count, spoken, text
from palate.models.client import Request
from palate.models.digits import digit_fields, read_digits, read_first_token
from palate.models.shapes import Shaped
from palate.models.streaming import Event
from palate.types import Usage

PATH = "/chat/completions"

_A_PATH = re.compile(r"/|~|\.|[A-Za-z]:\\")

_CUT = frozenset({"length", "max_tokens"})
_SAID = (None, "text", "output_text")
_THOUGHT = ("thinking", "reasoning")
_BLOCKED = frozenset({"content_filter", "refusal", "safety", "sensitive", "blocked"})


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """Writes requests and reads answers of one model.

    `max_tokens_field`: OpenAI's own newer models refuse "max_tokens", most others know only it.
    """

    model: str
    json_schema: bool = False
    digits: str = "none"
    max_tokens_field: str = "max_tokens"
    extra_body: Mapping[str, object] = field(default_factory=dict)

    def headers(self, key: str | None) -> dict[str, str]:
        """Headers that carry the key, if there is one."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, shaped: Shaped) -> dict[str, object]:
        """The request's JSON object, before the fields of its `Sampling.body`."""
        sampling = request.sampling
        body: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": m.role, "content": m.text} for m in shaped.messages],
            self.max_tokens_field: sampling.max_tokens,
        }
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        if sampling.seed is not None:
            body["seed"] = sampling.seed
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        body.update(self.extra_body)
        self._ask_for_form(request, body)
        return body

    def _ask_for_form(self, request: Request, body: dict[str, object]) -> None:
        if request.digits and self.digits != "none":
            fields = digit_fields(self.digits, request.digits, request.digit_choices)
            body[self.max_tokens_field] = fields.pop("max_tokens")
            body.update(fields)
        elif request.first_token:
            body.update({"logprobs": True, "top_logprobs": request.first_token})
        elif request.json_schema is not None and self.json_schema:
            schema = {"name": "verdict", "strict": True, "schema": request.json_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}

    def read(self, value: object, request: Request) -> Answer:
        """The answer in a response of HTTP 200.

        Raises:
            Malformed: an error in place of an answer, or no message in it.
        """
        if not isinstance(value, dict):
            raise Malformed("is no JSON object")
        if value.get("error"):
            raise Malformed(f"is an error: {_error_text(value['error'])}")
        choice, message = _first_message(value)
        finish = text(choice.get("finish_reason")).lower()
        if finish == "error":
            raise Malformed("broke off with an error")
        said, thought, refused = _content(message)
        usage = value.get("usage")
        result = spoken(
            said,
            thought or _hidden_reasoning(usage),
            refused=refused or finish in _BLOCKED,
            cut=finish in _CUT,
        )
        probabilities: tuple[dict[str, float], ...] = ()
        logprobs = choice.get("logprobs")
        if request.digits and self.digits != "none":
            probabilities = read_digits(logprobs, request.digits, request.digit_choices)
        first = read_first_token(logprobs) if request.first_token else ()
        return Answer(*result, _served(value), _usage(usage), probabilities, first)

    def delta(self, event: Event) -> str:
        """See `palate.models.remote.Wire`."""
        return text(_change(event).get("content"))

    def joined(self, events: Sequence[Event]) -> Event:
        """See `palate.models.remote.Wire`."""
        said: dict[str, object] = {}
        whole: dict[str, object] = {"choices": [{"message": said}]}
        for event in events:
            change = _change(event)
            for part in ("content", "reasoning_content", "reasoning", "refusal"):
                if text(change.get(part)):
                    said[part] = text(said.get(part)) + text(change.get(part))
            finish = _first_choice(event).get("finish_reason")
            if finish:
                whole["choices"] = [{"message": said, "finish_reason": finish}]
            whole |= {k: event[k] for k in ("model", "usage", "error") if event.get(k)}
        return whole


def _first_choice(event: Event) -> Mapping[str, object]:
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _change(event: Event) -> Mapping[str, object]:
    change = _first_choice(event).get("delta")
    return change if isinstance(change, dict) else {}


def _served(value: dict[str, object]) -> str:
    """The model's name; of a path, as llama.cpp gives it, only the file: folders are private."""
    name = text(value.get("model"))
    return PureWindowsPath(name).name if _A_PATH.match(name) else name


def _error_text(error: object) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


def _first_message(value: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Malformed("has no message in it")
    return choice, message


def _content(message: dict[str, object]) -> tuple[str, str, bool]:
    """Text, reasoning, and whether the message is a refusal of the provider."""
    content = message.get("content")
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    refused = bool(message.get("refusal"))
    if content is None:
        return "", thought, refused
    if isinstance(content, str):
        return content, thought, refused
    if not isinstance(content, list):
        raise Malformed("has a content that is no text")
    parts: list[dict[str, object]] = [
        {"text": part} if isinstance(part, str) else part
        for part in content
        if isinstance(part, str | dict)
    ]
    said = [text(p.get("text")) for p in parts if p.get("type") in _SAID]
    thoughts = [thought, *(_thought(p) for p in parts if p.get("type") in _THOUGHT)]
    refused = refused or any(p.get("type") == "refusal" for p in parts)
    return "".join(said), "\n".join(t for t in thoughts if t), refused


def _thought(part: dict[str, object]) -> str:
    """Reasoning in a content part: under its type's name or "text", as text or as text parts."""
    inner = part.get("thinking") or part.get("reasoning") or part.get("text")
    if isinstance(inner, list):
        return "".join(text(i.get("text")) for i in inner if isinstance(i, dict))
    return text(inner)


def _hidden_reasoning(usage: object) -> str:
    """A stand-in where the endpoint counts reasoning tokens without showing them."""
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    tokens = count(details.get("reasoning_tokens")) if isinstance(details, dict) else 0
    return f"[{tokens} tokens, not shown by the endpoint]" if tokens else ""


def _usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    cached = cached or count(usage.get("prompt_cache_hit_tokens"))
    prompt = count(usage.get("prompt_tokens"))
    return Usage(prompt, count(usage.get("completion_tokens")), min(cached, prompt))
