"""What a scripted engine replies, and what it was asked. Makes no reply."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chatbot.engine.base import SamplingParams


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply of the script, and what goes wrong in it.

    `token_ids` replaces the ids of `text`, for what no sound text gives: half characters,
    control tokens, ids out of range. `fail_after_tokens` raises `error` at that place.
    `stall_after_tokens` waits there until the reply is stopped. `tokens_per_s` overrides the
    engine's. `ends_itself` False runs on to max_tokens, repeating the text.
    """

    text: str = ""
    token_ids: tuple[int, ...] | None = None
    fail_after_tokens: int | None = None
    error: Exception | None = None
    stall_after_tokens: int | None = None
    tokens_per_s: float | None = None
    ends_itself: bool = True


Scripted = str | Exception | ScriptedReply
Script = Iterable[Scripted] | Callable[[str, tuple[int, ...]], Scripted]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """What one call of `generate` was given. `prompt_text` shows control tokens."""

    prompt_ids: tuple[int, ...]
    prompt_text: str
    params: SamplingParams
    conversation_id: str | None
    ladder: tuple[str, ...] | None = None
