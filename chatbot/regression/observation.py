"""What one turn of a case showed, for the assertions to look at. Frozen data, no judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chatbot.messages import Conversation, PromptTrace, SegmentKind, Turn


@dataclass(frozen=True, slots=True)
class EngineCall:
    """What the engine was given for a reply. `control_ids` are those of the prompt, in order."""

    prompt_tokens: int
    control_ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A turn with all that surrounded it."""

    turn: Turn
    before: Conversation
    """The conversation as stored when the question was asked."""
    after: Conversation
    """The conversation as stored when the reply and its folds had ended."""
    call: EngineCall | None = None
    expected_control_ids: tuple[int, ...] = ()
    """The template's own control ids for a prompt with so many turns."""
    forbidden_ids: frozenset[int] = frozenset()
    window_tokens: int = 0
    latency_s: float = 0.0
    first_token_s: float | None = None
    folds: int = 0
    """Summaries stored so far."""
    kv_bytes: int = 0
    process_bytes: int = 0
    documents: Callable[[], Mapping[str, str]] = dict
    """Text of each document of the conversation by its name; read when it is asked for."""
    library_documents: int = 0
    """Documents in the library, whichever chat may use them."""
    similarity: Callable[[str, str], float] | None = None

    @property
    def trace(self) -> PromptTrace:
        assert self.turn.trace is not None, "a turn that was answered has a trace"
        return self.turn.trace

    def prompt_texts(self, *kinds: SegmentKind) -> list[str]:
        """Texts of the prompt's segments of these kinds; of all without any."""
        return [s.text for s in self.trace.segments if not kinds or s.kind in kinds]

    @property
    def answered(self) -> bool:
        """Whether a prompt was made; a question may be refused before that."""
        return self.turn.trace is not None
