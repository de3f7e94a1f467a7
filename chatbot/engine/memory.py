"""How much memory a model takes: arithmetic on the figures of its configuration.

Knows nothing of files, names or loading, and reads no weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from chatbot.engine.model_figures import ModelFigures

Weights = Literal["none", "int8", "int4"]
CacheKind = Literal["16bit", "int8", "int4", "none"]
WEIGHTS: tuple[Weights, ...] = ("none", "int8", "int4")
CACHES: tuple[CacheKind, ...] = ("16bit", "int8", "int4")
DEFAULT_WINDOW_TOKENS = 8192
MIN_WINDOW_TOKENS = 64
KEY_BITS, VALUE_BITS = 5, 4
"""Of a cache in "int4", beside a 16-bit scale for each head and token."""
GIB = 1 << 30
MIB = 1 << 20
RUNTIME_BYTES = 416 * MIB
"""What the libraries take before any weights: torch and transformers on a CPU, measured."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What one way of running a model takes, against what there is."""

    weights: Weights
    cache: CacheKind
    value_bytes: int
    window_tokens: int
    weights_bytes: int
    kv_bytes_per_token: int
    working_bytes: int
    """Peak of one piece of prefill beside weights and cache, at this window."""
    reserve_bytes: int
    """The runtime itself and fragmentation."""
    available_bytes: int
    largest_window_tokens: int
    """Largest window that fits, at most the model's own; 0 when not even the smallest does."""
    replies_at_once: int = 1
    """Each has a whole window of cache; they take turns at the model, so the work counts once."""

    @property
    def kv_bytes(self) -> int:
        return self.kv_bytes_per_token * self.window_tokens * self.replies_at_once

    @property
    def runtime_bytes(self) -> int:
        """The part of the reserve that is surely taken."""
        return RUNTIME_BYTES

    @property
    def peak_bytes(self) -> int:
        """What the process is to take at most; the rest of the reserve is for what goes wrong."""
        return self.weights_bytes + self.kv_bytes + self.working_bytes + self.runtime_bytes

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_bytes + self.working_bytes + self.reserve_bytes

    @property
    def missing_bytes(self) -> int:
        return max(0, self.total_bytes - self.available_bytes)

    @property
    def fits(self) -> bool:
        return self.missing_bytes == 0


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """How a model is to be run. `window_tokens` 0 takes what fits, up to 8,192 tokens."""

    weights: Weights = "none"
    cache: CacheKind = "16bit"
    window_tokens: int = 0
    piece_tokens: int = 512
    on_cuda: bool = False
    value_bytes: int = 2
    """Bytes of an unpacked number: 2, or 4 where a CPU has no fast 16-bit arithmetic."""
    caches: tuple[CacheKind, ...] = ()
    """Those to choose from, best first; none given: `cache` alone."""
    replies_at_once: int = 1


def weights_bytes(
    figures: ModelFigures, weights: Weights, value_bytes: int = 2, *, on_cuda: bool = True
) -> int:
    """Bytes of all weights; embedding and output layer stay unpacked, but for 8 bit on a CPU."""
    packed = figures.linear_parameters
    if weights == "int8" and not on_cuda:
        outer_rows = figures.outer_parameters // figures.hidden
        return packed + figures.outer_parameters + 4 * (_output_rows(figures) + outer_rows)
    outer = value_bytes * figures.outer_parameters
    if weights == "none":
        return value_bytes * packed + outer
    if weights == "int8":  # one byte, and a float32 scale for each output row
        return packed + 4 * _output_rows(figures) + outer
    # Half a byte, and a float32 scale for each block of 64.
    return packed // 2 + packed // 16 + outer


def kv_bytes_per_token(figures: ModelFigures, cache: CacheKind) -> int:
    """Bytes of keys and values of one token in all layers, whatever the model computes in."""
    vectors = 2 * figures.layers * figures.kv_heads
    if cache == "none":
        return 0
    if cache == "16bit":
        return vectors * 2 * figures.head_dim
    if cache == "int8":  # a 16-bit scale for each head and token
        return vectors * (figures.head_dim + 2)
    return vectors // 2 * ((KEY_BITS + VALUE_BITS) * figures.head_dim // 8 + 2 * 2)


def working_bytes(
    figures: ModelFigures,
    piece_tokens: int,
    window_tokens: int,
    value_bytes: int = 2,
    *,
    cached: bool = True,
) -> int:
    """Peak of one piece of prefill at the end of a full window, beside weights and cache.

    Counted: hidden states, the feed-forward's two branches, one layer's keys and values copied
    and repeated for all heads, the mask, and the last row's logits, also in float32. Without a
    cache the whole window goes through each layer at once, which needs no mask; only the
    feed-forward is computed in pieces.
    """
    piece = min(piece_tokens, window_tokens)
    hidden = 6 * (piece if cached else window_tokens) * figures.hidden * value_bytes
    feed_forward = 3 * piece * figures.intermediate * value_bytes
    vectors = 2 * window_tokens * (figures.kv_heads + figures.heads)
    copied = vectors * figures.head_dim * value_bytes
    mask = value_bytes * piece * window_tokens if cached else 0
    logits = figures.vocabulary * (value_bytes + 4 + 4)
    return hidden + feed_forward + copied + mask + logits


def reserve_bytes(weights_total_bytes: int) -> int:
    """The runtime's own memory and fragmentation: half a GiB and 3 % of the weights."""
    return RUNTIME_BYTES + 96 * MIB + weights_total_bytes * 3 // 100


def make_plan(
    figures: ModelFigures, available_bytes: int, request: PlanRequest | None = None
) -> MemoryPlan:
    """What fits into `available_bytes`. Pure; see MemoryPlan."""
    request = request or PlanRequest()
    value_bytes = request.value_bytes
    weights = weights_bytes(figures, request.weights, value_bytes, on_cuda=request.on_cuda)
    reserve = reserve_bytes(weights)
    per_token = kv_bytes_per_token(figures, request.cache)
    left = available_bytes - weights - reserve

    def fits(window_tokens: int) -> bool:
        working = _working_bytes(figures, request, window_tokens)
        return request.replies_at_once * per_token * window_tokens + working <= left

    largest = _largest(fits, figures.window_tokens)
    # When nothing fits, the wanted window shows by how much.
    wanted = min(DEFAULT_WINDOW_TOKENS, figures.window_tokens)
    window = request.window_tokens or min(largest or wanted, wanted)
    return MemoryPlan(
        weights=request.weights,
        cache=request.cache,
        value_bytes=value_bytes,
        window_tokens=window,
        weights_bytes=weights,
        kv_bytes_per_token=per_token,
        working_bytes=_working_bytes(figures, request, window),
        reserve_bytes=reserve,
        available_bytes=available_bytes,
        largest_window_tokens=largest,
        replies_at_once=request.replies_at_once,
    )


def plan_bytes_left(plan: MemoryPlan) -> int:
    """Bytes that all but the cache leave free, for caches; negative when nothing is left."""
    return plan.available_bytes - plan.weights_bytes - plan.working_bytes - plan.reserve_bytes


def _working_bytes(figures: ModelFigures, request: PlanRequest, window_tokens: int) -> int:
    return working_bytes(
        figures,
        request.piece_tokens,
        window_tokens,
        request.value_bytes,
        cached=request.cache != "none",
    )


def _output_rows(figures: ModelFigures) -> int:
    attention = (figures.heads + 2 * figures.kv_heads) * figures.head_dim + figures.hidden
    return figures.layers * (attention + 2 * figures.intermediate + figures.hidden)


def _largest(fits: Any, upper: int) -> int:
    """The largest n in [MIN_WINDOW_TOKENS, upper] that fits, by bisection; 0 if none does."""
    low = min(MIN_WINDOW_TOKENS, upper)
    if not fits(low):
        return 0
    high = upper
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
