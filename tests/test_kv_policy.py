"""What is used again, what goes first and how much there may be: numbers only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatbot.engine.kv_policy import (
    STEP_TOKENS,
    WINDOWS_AT_MOST,
    cache_bound,
    cache_kinds,
    cache_policy,
    capacity_tokens,
    common_prefix,
    packable_kinds,
    reusable_tokens,
    room_for_chat,
    to_evict,
)
from chatbot.engine.loading import request_of
from chatbot.engine.memory import GIB, PlanRequest, make_plan, plan_bytes_left
from chatbot.engine.model_figures import figures_of
from chatbot.engine.planning import best_plan
from chatbot.errors import SettingsError
from chatbot.settings import Settings, load_settings

CONFIG = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}
EIGHT = figures_of(CONFIG)


@pytest.mark.parametrize(
    "held, prompt, kept",
    [
        ((), (1, 2), 0),
        ((1, 2, 3), (1, 2, 4), 2),
        ((1, 2, 3), (1, 2, 3, 4), 3),
        ((1, 2, 3, 4, 5), (1, 2, 3), 2),  # the last token must be read for its logits
        ((1, 2, 3), (1, 2, 3), 2),
        ((1,), (1,), 0),
        ((9, 2, 3), (1, 2, 3), 0),
    ],
)
def test_longest_common_prefix_but_never_all(
    held: tuple[int, ...], prompt: tuple[int, ...], kept: int
) -> None:
    assert reusable_tokens(held, prompt) == kept
    assert common_prefix(held, prompt) == common_prefix(prompt, held) >= kept


def test_little_kept_is_a_fresh_start() -> None:
    prompt = tuple(range(1000))
    assert reusable_tokens((*prompt[:49], -1), prompt) == 0
    assert reusable_tokens((*prompt[:50], -1), prompt) == 50


def test_oldest_go_first_and_no_more_than_needed() -> None:
    sizes = {"old": 10, "middle": 20, "new": 30}
    assert to_evict(sizes, 60) == []
    assert to_evict(sizes, 59) == ["old"]
    assert to_evict(sizes, 49) == ["old", "middle"]
    assert to_evict(sizes, 0) == ["old", "middle", "new"]
    assert to_evict({}, 0) == []


def test_capacity_is_in_whole_steps() -> None:
    assert [capacity_tokens(n) for n in (0, 1, STEP_TOKENS, STEP_TOKENS + 1)] == [
        0, STEP_TOKENS, STEP_TOKENS, 2 * STEP_TOKENS,
    ]  # fmt: skip


def test_bound_of_the_settings_is_kept_and_shrinks_the_window() -> None:
    plan = make_plan(EIGHT, 32 * GIB, PlanRequest("int8"))
    per_token = plan.kv_bytes_per_token
    bound = cache_bound(plan, 1000 * per_token, per_token)
    assert bound.n_bytes == 1000 * per_token
    assert bound.window_tokens == 960  # whole steps below 1,000
    assert cache_bound(plan, GIB * 9, per_token).window_tokens == plan.window_tokens
    with pytest.raises(SettingsError, match=f"at least {64 * per_token}"):
        cache_bound(plan, 63 * per_token, per_token)


def test_computed_bound_is_a_window_at_least_and_half_of_what_is_left() -> None:
    tight = make_plan(EIGHT, 11 * GIB, PlanRequest("int8", on_cuda=True))
    per_token = tight.kv_bytes_per_token
    window = 8192 * per_token
    assert cache_bound(tight, 0, per_token).n_bytes == window
    wide = replace(tight, available_bytes=16 * GIB)
    left = plan_bytes_left(wide)
    assert window < cache_bound(wide, 0, per_token).n_bytes == left // 2
    huge = replace(tight, available_bytes=500 * GIB)
    assert cache_bound(huge, 0, per_token).n_bytes == WINDOWS_AT_MOST * window


def test_auto_takes_8_bit_only_where_the_window_does_not_fit_else() -> None:
    request = PlanRequest("int8", window_tokens=8192, on_cuda=True)
    auto = replace(request, caches=cache_kinds(Settings()))
    tight = int(10.1 * GIB)
    assert best_plan(EIGHT, 16 * GIB, auto).cache == "16bit"
    assert not best_plan(EIGHT, tight, request).fits
    assert best_plan(EIGHT, tight, auto).cache == "int8"
    assert best_plan(EIGHT, tight, auto).fits
    chosen = replace(request, caches=cache_kinds(Settings(kv_cache_dtype="16bit")))
    assert best_plan(EIGHT, tight, chosen).cache == "16bit"


def test_settings_read_sizes_and_refuse_unknown_kinds() -> None:
    flags = {"kv_cache_bytes": "2GiB", "kv_cache_dtype": "int8"}
    settings = load_settings(flags, environ={})
    assert settings.kv_cache_bytes == 2 * GIB
    assert cache_kinds(settings) == ("int8",)
    for wrong in ({"kv_cache_dtype": "int5"}, {"kv_cache_bytes": "much"}, {"kv_cache_bytes": "-1"}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            load_settings(wrong, environ={})


def test_without_a_cache_the_plan_counts_none_and_one_long_pass() -> None:
    settings = Settings(kv_cache="none")
    assert cache_kinds(settings) == ("none",)
    request = PlanRequest("int8", window_tokens=8192, on_cuda=True, caches=cache_kinds(settings))
    tight = 10 * GIB
    assert not best_plan(EIGHT, tight, replace(request, caches=("16bit",))).fits
    plan = best_plan(EIGHT, tight, request)
    assert plan.fits
    assert (plan.cache, plan.kv_bytes_per_token, plan.kv_bytes) == ("none", 0, 0)
    cached = make_plan(EIGHT, 16 * GIB, replace(request, cache="16bit"))
    assert plan.working_bytes > cached.working_bytes
    assert plan.total_bytes < cached.total_bytes
    for wanted in (0, GIB):
        bound = cache_bound(plan, wanted, plan.kv_bytes_per_token)
        assert (bound.n_bytes, bound.window_tokens) == (0, 8192)
    policy = cache_policy(Settings(kv_idle="int8", kv_prompt_eviction="snapkv"))
    assert (policy.idle, policy.in_prompt, policy.in_reply) == ("int8", "snapkv", "sink")


def test_heads_of_odd_widths_are_not_packed_to_4_bit() -> None:
    """A byte holds the highest bits of eight numbers of a key; a reply would fail."""
    odd = figures_of(CONFIG | {"head_dim": 100})
    auto = request_of(Settings(), odd, device="cpu")
    assert auto.caches == packable_kinds(("16bit", "int8", "int4"), 100) == ("16bit", "int8")
    assert request_of(Settings(), EIGHT, device="cpu").caches[-1] == "int4"
    with pytest.raises(SettingsError, match="this model's is 100; choose int8"):
        request_of(Settings(kv_cache_dtype="int4"), odd, device="cpu")


@pytest.mark.parametrize(
    ("needed", "window", "room"),
    [(10, 512, 512), (10, 8192, 2048), (2048, 8192, 2048), (2049, 8192, 4096), (8000, 8192, 8192)],
)
def test_storage_of_a_chat_grows_by_doubling_up_to_the_window(
    needed: int, window: int, room: int
) -> None:
    assert room_for_chat(needed, window) == room
