"""What a server says of itself: the models that it has, and what it makes of a conversation.

No standard covers either; llama.cpp and vLLM say both. A server that says nothing is no error here:
whoever asks must do without, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from palate.models.answers import text
from palate.models.client import ChatMessage, Model


@runtime_checkable
class Serves(Protocol):
    """A model behind a server that can be asked about itself."""

    async def asked(self, path: str, body: Mapping[str, object] | None = None) -> object:
        """The JSON at `path`, or None: a GET, or with `body` a POST.

        "/models" is below the base URL of the API, everything else below the server's own.
        """
        ...


class Listed(NamedTuple):
    """A model in a server's list; `parent` is the base of an adapter, "" where it is not told."""

    name: str
    root: str  # the weights: a hub name or a path
    parent: str


class Rendered(NamedTuple):
    """A conversation as the model is given it; None where the server does not tell."""

    text: str | None
    tokens: tuple[int, ...] | None


async def listed(model: Model) -> tuple[Listed, ...]:
    """The models of the server, empty where it does not tell."""
    said = await model.asked("/models") if isinstance(model, Serves) else None
    data = said.get("data") if isinstance(said, dict) else None
    return tuple(
        Listed(text(item.get("id")), text(item.get("root")), text(item.get("parent")))
        for item in (data if isinstance(data, list) else ())
        if isinstance(item, dict) and text(item.get("id"))
    )


async def rendered(
    model: Model, served: str, messages: Sequence[ChatMessage], arguments: Mapping[str, object]
) -> Rendered:
    """What the server makes of `messages` for the model that it calls `served`.

    `arguments` are those of the chat template.
    """
    if not isinstance(model, Serves):
        return Rendered(None, None)
    chat: dict[str, object] = {
        "messages": [{"role": m.role, "content": m.text} for m in messages],
        "add_generation_prompt": True,
        **({"chat_template_kwargs": dict(arguments)} if arguments else {}),
    }
    applied = await model.asked("/apply-template", chat)
    prompt = applied.get("prompt") if isinstance(applied, dict) else None
    if isinstance(prompt, str):
        return Rendered(prompt, None)
    tokens = _tokens(await model.asked("/tokenize", {"model": served, **chat}))
    if tokens is None:
        return Rendered(None, None)
    again = await model.asked("/detokenize", {"model": served, "tokens": tokens})
    told = again.get("prompt") if isinstance(again, dict) else None
    return Rendered(told if isinstance(told, str) else None, tokens)


def _tokens(said: object) -> tuple[int, ...] | None:
    found = said.get("tokens") if isinstance(said, dict) else None
    if not isinstance(found, list) or not found or not all(type(one) is int for one in found):
        return None
    return tuple(found)
