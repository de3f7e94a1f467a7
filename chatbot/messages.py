"""Frozen data of a conversation: messages, turns, summaries, traces. No behaviour but views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from retrieval.types import Citation

Role = Literal["system", "user", "assistant"]
Finish = Literal["running", "stop", "length", "cancelled", "error", "interrupted", "memory"]
SegmentKind = Literal["system", "summary", "turn", "recalled", "passage", "question"]
SummaryOrigin = Literal["model", "extractive", "edited"]


@dataclass(frozen=True, slots=True)
class Message:
    """One utterance. `id` is kept from an import; `name` is the speaker if there are several."""

    id: str
    role: Role
    content: str
    name: str | None = None
    created: str | None = None

    @property
    def spoken(self) -> str:
        """The text with its speaker, as it stands in a prompt."""
        return f"{self.name}: {self.content}" if self.name else self.content


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should know about a turn.

    `code` selects the sentence in the user's language, `values` fill its blanks; `text` is the
    English sentence, complete.
    """

    code: str
    text: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and seconds of one or more model calls; adds up."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.prefill_s + other.prefill_s,
            self.decode_s + other.decode_s,
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of a prompt. `tokens` includes the piece's share of the chat template."""

    kind: SegmentKind
    tokens: int
    text: str
    message_ids: tuple[str, ...] = ()
    document: str | None = None
    document_id: str | None = None
    page: int | None = None
    page_end: int | None = None
    start: int | None = None
    end: int | None = None
    label: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A piece that was wanted but left out, and why."""

    segment: Segment
    reason: str


@dataclass(frozen=True, slots=True)
class PromptTrace:
    """What really went into one model call. `sum(s.tokens for s in segments) == prompt_tokens`."""

    question: str
    prompt_tokens: int
    limit_tokens: int
    reply_tokens: int
    segments: tuple[Segment, ...]
    dropped: tuple[Dropped, ...] = ()
    reused_tokens: int = 0
    query: str = ""
    """What was searched for: the question, with words of earlier turns if it leans on them."""
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """A short verbatim line that a summary carries, with the turn that it comes from."""

    text: str
    turn_id: str
    message_id: str
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class RollingSummary:
    """Stands for the `covers` oldest turns of a conversation. `tokens` counts `text`."""

    text: str
    covers: int
    tokens: int
    facts: tuple[Fact, ...] = ()
    origin: SummaryOrigin = "model"
    created: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user said and what was answered.

    Both sides are tuples, since imported chats hold several messages of one side in a row.
    `reply_token_ids` are the generated ids (without the end token), valid for the tokenizer
    named `tokenizer_name` only.
    """

    id: str
    user: tuple[Message, ...]
    assistant: tuple[Message, ...] = ()
    citations: tuple[Citation, ...] = ()
    trace: PromptTrace | None = None
    usage: Usage | None = None
    finish: Finish = "stop"
    created: str = ""
    reply_token_ids: tuple[int, ...] = ()
    tokenizer_name: str | None = None
    notices: tuple[Notice, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Sentences of the reply that no passage supports (only when passages were given)."""
    best_sentence: Citation | None = None
    """The sentence of the sources that matches the question best, word for word."""

    @property
    def question(self) -> str:
        return "\n\n".join(m.spoken for m in self.user)

    @property
    def reply(self) -> str:
        return "\n\n".join(m.spoken for m in self.assistant)

    @property
    def message_ids(self) -> tuple[str, ...]:
        return tuple(m.id for m in (*self.user, *self.assistant))


@dataclass(frozen=True, slots=True)
class Conversation:
    """One chat with all its turns, oldest first. Folding never removes a turn."""

    id: str
    title: str = ""
    turns: tuple[Turn, ...] = ()
    summary: RollingSummary | None = None
    system_text: str | None = None
    """Replaces the default system text when set."""
    created: str = ""
    updated: str = ""
    document_ids: tuple[str, ...] = ()
    """Documents that questions in this chat may use."""
