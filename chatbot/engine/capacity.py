"""How many GPUs a number of users needs, from a model's figures. Arithmetic only; loads nothing.

A server as vLLM's is supposed: weights are split over the GPUs of a group, caches are kept in pages
and replies are made in one batch. Reading a prompt is bound by arithmetic, writing a reply by the
memory that is read for each token of the batch: all weights once, and the cache of each reply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chatbot.engine.memory import CacheKind, Weights, kv_bytes_per_token, weights_bytes
from chatbot.engine.model_figures import ModelFigures
from chatbot.errors import InputError

GIB = 1 << 30
LARGEST_GROUP = 16
VECTOR_BYTES = 4


@dataclass(frozen=True, slots=True)
class Load:
    """What users do in the busiest hour, and have stored. Shares are of 1."""

    active_share: float = 0.1
    turns_per_hour: float = 12.0
    turns_per_day: float = 10.0
    prompt_tokens: float = 3000.0
    reply_tokens: float = 300.0
    cached_share: float = 0.6
    turn_bytes: float = 40_000.0
    chunks: float = 500.0
    windows_per_chunk: float = 3.0
    vector_dimensions: int = 384


@dataclass(frozen=True, slots=True)
class Hardware:
    """One GPU, and what is reached of its figures; one core of a machine for the program."""

    memory_bytes: int = 80 * GIB
    bandwidth_bytes_s: float = 3.35e12
    flops: float = 989e12
    usable_memory: float = 0.9
    reached_bandwidth: float = 0.6
    reached_flops: float = 0.4
    busy_at_most: float = 0.6
    slowest_tokens_s: float = 15.0
    core_s_per_turn: float = 0.1
    vectors_per_shard: float = 10e6
    spare_groups: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs that hold one copy of the model, and what they do in a second."""

    gpus: int
    weights_bytes: int
    kv_bytes: int
    kv_bytes_per_token: int
    batch: int
    """Replies at once at which each still gets `slowest_tokens_s`, and whose caches fit."""
    decode_tokens_s: float
    prefill_tokens_s: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """What so many users need. Rates are of the busiest hour."""

    users: int
    group: Group
    turns_s: float
    prefill_tokens_s: float
    decode_tokens_s: float
    replies_at_once: float
    first_token_s: float
    groups: int
    gpus: int
    weights_bytes: int
    kv_bytes: int
    kv_needed_bytes: int
    app_cores: float
    app_replicas: int
    database_bytes_day: float
    vectors: float
    vector_bytes: float
    vector_shards: int


def groups_for(
    figures: ModelFigures, hardware: Hardware, load: Load, *, weights: Weights, cache: CacheKind
) -> list[Group]:
    """Groups of 1, 2, 4... GPUs that hold the model and write fast enough. Raises InputError."""
    per_token = kv_bytes_per_token(figures, cache)
    loaded = weights_bytes(figures, weights, on_cuda=True)
    found = []
    gpus = 1
    while gpus <= LARGEST_GROUP:
        kv_bytes = math.floor(gpus * hardware.memory_bytes * hardware.usable_memory) - loaded
        batch = _batch(figures, hardware, load, gpus, (loaded, kv_bytes, per_token))
        if batch:
            step_s = _step_s(figures, hardware, load, gpus, (loaded, per_token, batch))
            prefill = gpus * hardware.flops * hardware.reached_flops / (2 * figures.parameters)
            found.append(Group(gpus, loaded, kv_bytes, per_token, batch, batch / step_s, prefill))
        gpus *= 2
    if not found:
        message = (
            f"Not even {LARGEST_GROUP} such GPUs are enough; choose others or a smaller model."
        )
        raise InputError(message)
    return found


def cheapest(users: int, groups: Sequence[Group], hardware: Hardware, load: Load) -> Capacity:
    """What `users` need, of the groups of which the fewest GPUs are enough."""
    return min((capacity(users, g, hardware, load) for g in groups), key=lambda c: c.gpus)


def capacity(users: int, group: Group, hardware: Hardware, load: Load) -> Capacity:
    """What `users` need, of groups of this kind."""
    turns_s = users * load.active_share * load.turns_per_hour / 3600
    prefill = turns_s * load.prompt_tokens * (1 - load.cached_share)
    decode = turns_s * load.reply_tokens
    busy = prefill / group.prefill_tokens_s + decode / group.decode_tokens_s
    groups = max(1, math.ceil(busy / hardware.busy_at_most)) + hardware.spare_groups
    first_token_s = load.prompt_tokens * (1 - load.cached_share) / group.prefill_tokens_s
    per_reply_s = first_token_s + load.reply_tokens * group.batch / group.decode_tokens_s
    at_once = turns_s * per_reply_s
    cores = turns_s * hardware.core_s_per_turn
    vectors = users * load.chunks * load.windows_per_chunk
    reply_tokens = load.prompt_tokens + load.reply_tokens
    return Capacity(
        users=users,
        group=group,
        turns_s=turns_s,
        prefill_tokens_s=prefill,
        decode_tokens_s=decode,
        replies_at_once=at_once,
        first_token_s=first_token_s,
        groups=groups,
        gpus=groups * group.gpus,
        weights_bytes=groups * group.weights_bytes,
        kv_bytes=groups * group.kv_bytes,
        kv_needed_bytes=math.ceil(at_once * reply_tokens * group.kv_bytes_per_token),
        app_cores=cores,
        # Python serves with about one core; two, so that one may be replaced.
        app_replicas=max(2, math.ceil(cores / hardware.busy_at_most)),
        database_bytes_day=users * load.turns_per_day * load.turn_bytes,
        vectors=vectors,
        vector_bytes=vectors * load.vector_dimensions * VECTOR_BYTES,
        vector_shards=max(1, math.ceil(vectors / hardware.vectors_per_shard)),
    )


def _batch(
    figures: ModelFigures,
    hardware: Hardware,
    load: Load,
    gpus: int,
    sizes: tuple[int, int, int],
) -> int:
    """The most replies at once; 0 when not even one fits or is fast enough."""
    loaded, kv_bytes, per_token = sizes
    most = math.floor(kv_bytes / (per_token * (load.prompt_tokens + load.reply_tokens)))
    slowest_s = 1 / hardware.slowest_tokens_s
    low, high = 0, max(most, 0)
    while low < high:
        middle = (low + high + 1) // 2
        step_s = _step_s(figures, hardware, load, gpus, (loaded, per_token, middle))
        low, high = (middle, high) if step_s <= slowest_s else (low, middle - 1)
    return low


def _step_s(
    figures: ModelFigures,
    hardware: Hardware,
    load: Load,
    gpus: int,
    sizes: tuple[int, int, int],
) -> float:
    """Seconds for one more token of each reply of a batch."""
    loaded, per_token, batch = sizes
    context = load.prompt_tokens + load.reply_tokens / 2
    read = loaded + batch * context * per_token
    by_memory = read / (gpus * hardware.bandwidth_bytes_s * hardware.reached_bandwidth)
    by_flops = 2 * figures.parameters * batch / (gpus * hardware.flops * hardware.reached_flops)
    return max(by_memory, by_flops)
