"""Which cached tokens are used again and which caches go first; integers only, no tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from chatbot.engine.memory import MIN_WINDOW_TOKENS, CacheKind, MemoryPlan, plan_bytes_left
from chatbot.errors import SettingsError
from chatbot.settings import Settings

STEP_TOKENS = 64
"""Caches grow by so many tokens at a time."""
LEAST_SHARE = 0.05
"""Least share of a prompt worth keeping. Reading behind a kept prefix needs a mask: of 800
tokens with the demo model on a CPU, behind 2 % kept the rest took 1.01 of the time of all of them
afresh, behind 5 % 0.95, behind 10 % 0.92 and behind 20 % 0.82."""
SINK_TOKENS = 4
"""The first tokens of a cache, on which much of all attention rests, stay whatever goes."""
DROPPED_SHARE = 0.25
"""Of a full cache, what is dropped at once: moving the rest costs as much for one token."""
FIRST_ROOM_TOKENS = 2048
"""A chat's cache begins with storage for so many."""
LEAST_ROOM_TOKENS = 64
"""A reply that may drop tokens begins with at least so much room behind its prompt."""
PACKED_AT_ONCE = 8
"""Numbers of a row that "int4" packs together: of their highest bits it makes a byte."""
WINDOWS_AT_MOST = 8
"""The computed bound holds so many full windows at most; more would rarely be asked for."""


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """What is done with caches when there is little room; each part as its setting says."""

    in_reply: Literal["sink", "none"] = "sink"
    """A reply that outgrows its cache drops its oldest tokens, or is refused at the start."""
    in_prompt: Literal["none", "snapkv"] = "none"
    prompt_keep_tokens: int = 1024
    """What "snapkv" keeps of a longer prompt."""
    idle: Literal["keep", "int8", "cpu"] = "keep"


@dataclass(frozen=True, slots=True)
class CacheBound:
    """The bytes that all caches together may take, and the window that one of them may fill."""

    n_bytes: int
    window_tokens: int


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many ids at the start are the same."""
    length = min(len(first), len(second))
    if first[:length] == second[:length]:
        return length
    return next(i for i in range(length) if first[i] != second[i])


def reusable_tokens(held_ids: Sequence[int], prompt_ids: Sequence[int]) -> int:
    """How many tokens of a prompt to take from a cache that holds `held_ids`; 0: start afresh.

    At most all but the last one, which must be read to get logits.
    """
    kept = min(common_prefix(held_ids, prompt_ids), len(prompt_ids) - 1)
    return kept if kept >= LEAST_SHARE * len(prompt_ids) else 0


def capacity_tokens(tokens: int) -> int:
    """The room that a cache of so many tokens takes, in whole steps."""
    return -(-tokens // STEP_TOKENS) * STEP_TOKENS


def tokens_to_drop(held_tokens: int, new_tokens: int, limit_tokens: int) -> int:
    """How many tokens behind the first few to drop before `new_tokens` are read; 0 if they fit.

    Never more than there are, so that with a limit of a few tokens the new ones pass it.
    """
    excess = held_tokens + new_tokens - limit_tokens
    if excess <= 0:
        return 0
    return min(max(excess, int(DROPPED_SHARE * limit_tokens)), max(held_tokens - SINK_TOKENS, 0))


def to_evict(sizes: Mapping[str, int], room_bytes: int) -> list[str]:
    """The names to drop, first of `sizes` first, until the rest takes at most `room_bytes`."""
    excess = sum(sizes.values()) - room_bytes
    names = []
    for name, n_bytes in sizes.items():
        if excess <= 0:
            break
        names.append(name)
        excess -= n_bytes
    return names


def cache_kinds(settings: Settings) -> tuple[CacheKind, ...]:
    """The kinds of cache that the settings allow, best first; "auto": few bits only if needed."""
    if settings.kv_cache == "none":
        return ("none",)
    kind = settings.kv_cache_dtype
    return ("16bit", "int8", "int4") if kind == "auto" else (kind,)


def can_be_packed(head_dim: int) -> bool:
    """Whether rows of such a width can be kept in 4 bit."""
    return head_dim % PACKED_AT_ONCE == 0


def packable_kinds(kinds: Sequence[CacheKind], head_dim: int) -> tuple[CacheKind, ...]:
    """Those of the kinds that a model with heads of such a width can have.

    Raises SettingsError when there is none.
    """
    left = tuple(kind for kind in kinds if kind != "int4" or can_be_packed(head_dim))
    if not left:
        message = (
            f"kv_cache_dtype int4 needs heads whose width is a multiple of {PACKED_AT_ONCE}, and "
            f"this model's is {head_dim}; choose int8."
        )
        raise SettingsError(message)
    return left


def cache_policy(settings: Settings) -> CachePolicy:
    """The part of the settings that says what to do when there is little room."""
    return CachePolicy(
        in_reply=settings.kv_eviction,
        in_prompt=settings.kv_prompt_eviction,
        prompt_keep_tokens=settings.kv_prompt_keep_tokens,
        idle=settings.kv_idle,
    )


def tokens_to_reserve(
    prompt_tokens: int, total_tokens: int, *, room_tokens: int, window_tokens: int
) -> int:
    """How many tokens a loan may hold, where there is room for `room_tokens`; 0: too few.

    All that it may need if there is room; else what there is, in whole steps, if the prompt and
    some of the reply fit: the rest is made by dropping tokens.
    """
    wanted = min(total_tokens, window_tokens)
    if capacity_tokens(wanted) > room_tokens:
        wanted = room_tokens // STEP_TOKENS * STEP_TOKENS
    enough = min(total_tokens, prompt_tokens + LEAST_ROOM_TOKENS)
    return wanted if wanted >= enough else 0


def room_for_chat(limit_tokens: int, window_tokens: int) -> int:
    """Tokens to take storage for when a chat needs `limit_tokens` of it now, at most the window.

    A chat that goes on fills its window. Storage that grows by doubling is grown two or three
    times in the longest chat, and a short one does not take the window of a long one.
    """
    room = FIRST_ROOM_TOKENS
    while room < limit_tokens:
        room *= 2
    return max(limit_tokens, min(room, window_tokens))


def cache_bound(plan: MemoryPlan, wanted_bytes: int, bytes_per_token: int) -> CacheBound:
    """The bound of the settings, or half of the memory that the plan leaves; the window within it.

    `wanted_bytes` 0 computes the bound: one full window for each reply at once at least,
    `WINDOWS_AT_MOST` at most. Raises SettingsError when the bound does not hold even the smallest
    window for each of them.
    """
    if not bytes_per_token:  # no cache at all
        return CacheBound(0, plan.window_tokens)
    replies = plan.replies_at_once
    full = replies * capacity_tokens(plan.window_tokens) * bytes_per_token
    if not wanted_bytes:
        spare = min(plan_bytes_left(plan) // 2, WINDOWS_AT_MOST * full)
        return CacheBound(max(full, spare), plan.window_tokens)
    holds = wanted_bytes // (replies * bytes_per_token * STEP_TOKENS) * STEP_TOKENS
    if holds < MIN_WINDOW_TOKENS:
        least = replies * MIN_WINDOW_TOKENS * bytes_per_token
        message = (
            f"kv_cache_bytes {wanted_bytes} holds {holds} tokens of this model for each reply; "
            f"choose at least {least}, or 0 to have it computed."
        )
        raise SettingsError(message)
    return CacheBound(wanted_bytes, min(plan.window_tokens, holds))
