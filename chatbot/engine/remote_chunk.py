"""What one event of a streamed reply brings, or a whole reply in place of a stream. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

from chatbot.engine.remote_words import shown

_THOUGHTS = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one event of the stream brings."""

    text: str = ""
    n_thought: int = 0
    """Letters that the model thought and that are no part of the reply."""
    token_ids: tuple[int, ...] | None = None
    finish: str | None = None
    """In the server's own word."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


def token_count(value: object) -> int | None:
    """A number of tokens as a server tells it; None for what can be none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 31 else None


def chunk_of(event: Any, *, is_chat: bool) -> Chunk:
    """Raises ValueError for an event that has another form."""
    try:
        return _read_chunk(event, is_chat=is_chat)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError("The server sent an event of another form.") from error


def whole_chunk(found: Mapping[str, Any], *, is_chat: bool) -> Chunk:
    """A reply that came whole, where a stream was asked for, as its only event.

    Raises ValueError for what is no reply.
    """
    try:
        choice = dict(found["choices"][0])
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError("What the server sent is no reply.") from error
    if choice.get("finish_reason") is None:
        choice["finish_reason"] = "stop"  # it is all that there is
    if is_chat:
        choice["delta"] = choice.pop("message", None)
    fields = {**found, "choices": [choice]}
    made = ChatCompletionChunk if is_chat else Completion
    return chunk_of(made.construct(**fields), is_chat=is_chat)


def _read_chunk(event: Any, *, is_chat: bool) -> Chunk:
    choice = event.choices[0] if event.choices else None
    text, finish, ids, n_thought = "", None, None, 0
    if choice is not None:
        delta = getattr(choice, "delta", None) if is_chat else choice
        n_thought = max(len(str(getattr(delta, key, None) or "")) for key in _THOUGHTS)
        text = _text(delta, is_chat=is_chat)
        finish = choice.finish_reason
        ids = getattr(choice, "token_ids", None)
    usage = event.usage
    details = getattr(usage, "prompt_tokens_details", None)
    timings = getattr(event, "timings", None)  # llama.cpp's own server
    cached = getattr(details, "cached_tokens", None)
    if cached is None and isinstance(timings, dict):
        cached = timings.get("cache_n")
    return Chunk(
        text,
        n_thought,
        tuple(ids) if isinstance(ids, list) else None,
        None if finish is None else shown(str(finish)),
        token_count(getattr(usage, "prompt_tokens", None)) or None,
        token_count(cached),
        token_count(getattr(usage, "completion_tokens", None)),
    )


def _text(delta: Any, *, is_chat: bool) -> str:
    """What the model says. A refusal, which comes in a field of its own, is its reply, too."""
    parts = [
        getattr(delta, key, None) or ""
        for key in (("content", "refusal") if is_chat else ("text",))
    ]
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("a text of another kind")
    # Half a surrogate is no character; no answer of ours could be sent with it.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
