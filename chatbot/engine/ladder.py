"""What to do next when memory has run out: a decision over a frozen state, and its words.

Knows no model, no cache and no conversation; whoever asks carries the step out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from chatbot.engine.memory import CacheKind
from chatbot.messages import Notice

Step = Literal[
    "evict_idle",
    "drop_prefix",
    "smaller_pieces",
    "int8_cache",
    "fewer_passages",
    "shorter_window",
    "no_cache",
]
STEPS: tuple[Step, ...] = get_args(Step)
"""In the order in which they are tried: what costs the user least comes first."""
CALLERS_STEPS: tuple[Step, ...] = ("fewer_passages", "shorter_window")
"""Those that need another prompt, so that only the engine's caller can take them."""
NO_SMALLER_PROMPT = "no_smaller_prompt"
"""In the ladder of a caller that has no smaller prompt to come back with. No step of its own."""
SMALLEST_PIECE_TOKENS = 32
PIECE_DIVISOR = 4
"""512 tokens a piece become 128 and then 32."""


@dataclass(frozen=True, slots=True)
class LadderState:
    """How a reply stands at which memory ran out."""

    taken: tuple[str, ...] = ()
    """Steps taken for this reply already, in order."""
    began: bool = False
    """A token of the reply is out, so that nothing can be tried again."""
    idle_bytes: int = 0
    """Bytes of caches that no reply uses now."""
    reused_tokens: int = 0
    new_tokens: int = 1
    """Tokens of the prompt that were not in the cache."""
    piece_tokens: int = 512
    cache: CacheKind = "16bit"
    can_quantize: bool = True
    """The model's caches can be kept in 8 bit."""
    can_do_without: bool = False
    """The model can be run without a cache."""
    caller_shrinks: bool = False
    """The caller can come back with a smaller prompt."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an attempt at a reply is made after some steps."""

    piece_tokens: int
    cache: CacheKind
    with_cache: bool = True


def next_step(state: LadderState) -> Step | None:
    """The step to take now; None when there is none left or the reply has begun.

    Never a step before the last one taken, so that the ladder comes to an end.
    """
    if state.began:
        return None
    last = max((STEPS.index(s) for s in STEPS if s in state.taken), default=-1)
    for place, step in enumerate(STEPS):
        repeated = step in state.taken and step != "smaller_pieces"
        if place >= last and not repeated and _helps(step, state):
            return step
    return None


def recipe(taken: Sequence[str], *, piece_tokens: int, cache: CacheKind) -> Recipe:
    """How to make the next attempt, from the engine's usual way and the steps taken."""
    for _ in range(list(taken).count("smaller_pieces")):
        piece_tokens = _smaller(piece_tokens)
    kind: CacheKind = "int8" if "int8_cache" in taken and cache == "16bit" else cache
    return Recipe(piece_tokens, kind, "no_cache" not in taken)


def steps_of(ladder: Sequence[str]) -> tuple[str, ...]:
    """The steps that were really taken, in order."""
    return tuple(step for step in ladder if step != NO_SMALLER_PROMPT)


def step_notice(step: str) -> Notice:
    """What the user is told about a step."""
    return Notice(f"memory_{step}", _SENTENCES.get(step, f"Memory ran out: {step}."))


def stopped_notice(sentence: str) -> Notice:
    """A reply that memory ended after it had begun."""
    return Notice("memory_stopped", sentence)


def _helps(step: Step, state: LadderState) -> bool:
    if step == "evict_idle":
        return state.idle_bytes > 0
    if step == "drop_prefix":
        return state.reused_tokens > 0
    if step == "smaller_pieces":
        # What is read in one piece as it is would be read in one piece again.
        smaller = _smaller(state.piece_tokens)
        return smaller < min(state.piece_tokens, state.new_tokens)
    if step == "int8_cache":
        return state.can_quantize and state.cache == "16bit"
    if step in CALLERS_STEPS:
        return state.caller_shrinks and NO_SMALLER_PROMPT not in state.taken
    return state.can_do_without


def _smaller(piece_tokens: int) -> int:
    return min(piece_tokens, max(piece_tokens // PIECE_DIVISOR, SMALLEST_PIECE_TOKENS))


_SENTENCES: dict[str, str] = {
    "evict_idle": "Memory ran short, so the caches of other chats were dropped; their next "
    "replies start later.",
    "drop_prefix": "Memory ran short, so the cache of this chat was dropped and the prompt was "
    "read again.",
    "smaller_pieces": "Memory ran short, so the prompt was read in smaller pieces.",
    "int8_cache": "Memory ran short, so the cache of this chat was kept in 8 bit.",
    "fewer_passages": "Memory ran short, so fewer passages were put into the prompt.",
    "shorter_window": "Memory ran short, so this reply was made in a shorter window.",
    "no_cache": "Memory ran short, so this reply was made slowly, without a cache.",
}
