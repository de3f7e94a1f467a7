"""The seam to a model: tokenizer and engine protocols, sampling, and the events of a reply.

Knows nothing of conversations, documents or budgets; a prompt is a tuple of token ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, Protocol, runtime_checkable

from chatbot.messages import Finish, MemoryFigures, Notice, Usage


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """The control parts of a chat template as token ids, by the roles that they stand between.

    A prompt is always ``begin + system + after_system + (user + after_user + assistant +
    after_assistant)* + user + end``; contents are encoded as ordinary text in between. So the
    tokens of the parts add up exactly, and no text can become a control token. A template
    without a system role has its system text folded into the first user turn: then
    `after_system` is a blank line encoded as text.
    """

    begin: tuple[int, ...]
    after_system: tuple[int, ...]
    after_user: tuple[int, ...]
    after_assistant: tuple[int, ...]
    end: tuple[int, ...]
    stop_ids: frozenset[int]
    """Every id that ends a reply."""
    has_system_role: bool = True


@runtime_checkable
class ChatTokenizer(Protocol):
    """A tokenizer that never makes control tokens out of text."""

    @property
    def name(self) -> str:
        """Identity of the vocabulary; stored reply ids are reused only under the same name."""
        ...

    @property
    def chat_format(self) -> ChatFormat: ...

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that only the template may produce."""
        ...

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of `text` as ordinary text, without begin or end tokens."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids` without control tokens; an incomplete character gives U+FFFD."""
        ...


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen. `temperature` 0 is greedy; `seed` None is unrepeatable.

    `repetition_penalty` counts the tokens of the reply, not those of the prompt.
    """

    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    min_tokens: int = 0
    """No end token before so many: for measurements on this machine, which need replies of one
    length whatever the model would say."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine is, for people and for reports."""

    model: str
    max_window_tokens: int
    """Longest prompt and reply together that can be made now."""
    device: str = "cpu"
    dtype: str = ""
    quantization: str = "none"
    is_demo: bool = False
    keeps_cache: bool = False
    """Whether a conversation's next reply starts sooner when its prompt's front was read before."""
    full_window_tokens: int = 0
    """What `max_window_tokens` is again once memory is no longer short; 0: it is not short."""
    replies_outgrow: bool = False
    """Whether a reply may go on when prompt and reply fill the window, without its oldest tokens,
    if it has room for `LEAST_ROOM_TOKENS` to begin with."""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Whether a model is there yet. `message` is one sentence; `progress` is in [0, 1].

    `again`: it failed, and is tried again by itself.
    """

    state: Literal["loading", "ready", "failed"]
    message: str = ""
    progress: float | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Prefilled:
    """So many tokens of the prompt have been read; `cached_tokens` of them were in the cache."""

    done_tokens: int
    total_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of the reply, whole characters only."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply has ended. `token_ids` are the generated ids without the end token."""

    finish: Finish
    text: str
    token_ids: tuple[int, ...]
    usage: Usage
    notices: tuple[Notice, ...] = ()


EngineEvent = Prefilled | TextDelta | Finished


class Engine(Protocol):
    """Makes a reply out of a prompt. Calls beyond those that may run at once wait in turn."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def tokenizer(self) -> ChatTokenizer: ...

    @property
    def status(self) -> EngineStatus: ...

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        """Yield `Prefilled` and `TextDelta` events, then exactly one `Finished`.

        Setting `stop` ends the reply within two tokens (also in prefill) with finish
        "cancelled"; closing the iterator does the same without a last event.
        `conversation_id` names whose cache may be reused; None reuses and keeps nothing.

        When memory runs out before the first token, the engine tries again with less (see
        `engine.ladder`); after it the reply ends with finish "memory". `ladder` is given by a
        caller that can make a smaller prompt: the steps taken for this reply so far.

        Raises EngineError after releasing everything that the call held (SmallerPromptError
        when a caller that gave `ladder` is to come back with a smaller prompt, OutOfMemoryError
        when nothing helped), and InputError when prompt and `max_tokens` exceed the window.
        """
        ...

    def forget(self, conversation_id: str) -> None:
        """Drop whatever is cached for a conversation."""
        ...

    def memory(self) -> MemoryFigures:
        """What is taken now, and the peaks of the reply that runs or ran last. Quick."""
        ...

    def close(self) -> None:
        """Free the model. Idempotent."""
        ...
