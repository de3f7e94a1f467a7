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
class MemoryFigures:
    """Bytes in use at one moment; 0 where unknown. `kv_by_conversation` is by conversation id."""

    weights_bytes: int = 0
    kv_bytes: int = 0
    kv_bound_bytes: int = 0
    kv_by_conversation: dict[str, int] = field(default_factory=dict)
    activations_peak_bytes: int = 0
    process_bytes: int = 0
    process_peak_bytes: int = 0
    device_allocated_bytes: int = 0
    device_reserved_bytes: int = 0
    device_peak_bytes: int = 0
    device_total_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and seconds of one or more model calls; adds up."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    memory: MemoryFigures | None = None
    """As it was at the end of the last of the calls."""
    ladder: tuple[str, ...] = ()
    """Steps taken because memory ran short, in order."""
    evicted_tokens: int = 0
    """Tokens that went out of the cache while the reply was made, since it had no room."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.prefill_s + other.prefill_s,
            self.decode_s + other.decode_s,
            memory=other.memory or self.memory,
            ladder=(*self.ladder, *other.ladder),
            evicted_tokens=self.evicted_tokens + other.evicted_tokens,
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
    estimated: bool = False
    """The tokens are estimates with a margin: the model's tokenizer is not at hand."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A short verbatim line that a summary carries, with the turn that it comes from.

    `turn_id` and `message_id` are "" for a line that the user added by hand.
    """

    text: str
    turn_id: str
    message_id: str
    pinned: bool = False
    id: str = ""
    """Stays the same when the line is edited. `records.fact_id` makes it when it is found."""
    earlier: str = ""
    """The line whose value this one replaced; "" if there was none."""
    edited: bool = False
    """The user's own wording: later folds keep it as it is."""


@dataclass(frozen=True, slots=True)
class RollingSummary:
    """Stands for the `covers` oldest turns of a conversation. `tokens` counts `text`.

    With `covers` 0 it holds nothing but what the user added or pinned before the first fold;
    `text` may then be "".
    """

    text: str
    covers: int
    tokens: int
    facts: tuple[Fact, ...] = ()
    origin: SummaryOrigin = "model"
    created: str = ""
    kept: str = ""
    """What the user wrote by hand. `text` begins with it, word for word, in this summary and in
    all later ones; a fold writes only what comes after it."""
    deleted: tuple[str, ...] = ()
    """Ids of facts that the user deleted; no later fold brings them back."""


@dataclass(frozen=True, slots=True)
class FoldDecision:
    """One attempt to summarise the `covers` oldest turns, and why it was kept or refused.

    `origin` is None when no summary came of it. `candidate` is the text that was judged.
    """

    created: str
    covers: int
    accepted: bool
    origin: SummaryOrigin | None
    reasons: tuple[str, ...]
    candidate: str = ""


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
class Branch:
    """Turns that once stood in the place of those from the turn number `at` on (from 0)."""

    at: int
    turns: tuple[Turn, ...]


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
    decisions: tuple[FoldDecision, ...] = ()
    """How the summary came to be; only in exports and imports, see `Store.load_whole`."""
    branches: tuple[Branch, ...] = ()
    """What was cut off by edits elsewhere; only in imports."""


@dataclass(frozen=True, slots=True)
class Version:
    """One of several questions, or replies, in the same place of a conversation.

    `id` is the id of its first turn. `turns` counts that one and those that follow it.
    """

    id: str
    question: str
    reply: str
    created: str
    turns: int
    is_current: bool
