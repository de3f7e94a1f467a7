"""What is done next when memory has run out: a table of states and steps, and the order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatbot.engine.ladder import (
    STEPS,
    LadderState,
    Recipe,
    next_step,
    recipe,
    step_notice,
)

FULL = LadderState(
    idle_bytes=1,
    reused_tokens=100,
    new_tokens=2000,
    piece_tokens=512,
    can_do_without=True,
    caller_shrinks=True,
)
BARE = LadderState(piece_tokens=16, can_quantize=False)


@pytest.mark.parametrize(
    "state, step",
    [
        (FULL, "evict_idle"),
        (replace(FULL, idle_bytes=0), "drop_prefix"),
        (replace(FULL, idle_bytes=0, reused_tokens=0), "smaller_pieces"),
        (replace(FULL, idle_bytes=0, reused_tokens=0, new_tokens=128), "int8_cache"),
        (replace(FULL, idle_bytes=0, reused_tokens=0, piece_tokens=32), "int8_cache"),
        (replace(FULL, taken=("smaller_pieces",), piece_tokens=128), "smaller_pieces"),
        (replace(FULL, taken=("smaller_pieces",), piece_tokens=32), "int8_cache"),
        (replace(FULL, taken=("drop_prefix",), reused_tokens=0, piece_tokens=32), "int8_cache"),
        (replace(FULL, taken=("int8_cache",), cache="int8"), "fewer_passages"),
        (replace(FULL, taken=("drop_prefix",), piece_tokens=32, cache="int8"), "fewer_passages"),
        (replace(FULL, taken=("fewer_passages",)), "shorter_window"),
        (replace(FULL, taken=("shorter_window",)), "no_cache"),
        (replace(FULL, taken=("int8_cache",), cache="int8", caller_shrinks=False), "no_cache"),
        (replace(FULL, taken=("no_cache",)), None),
        (replace(FULL, began=True), None),
        (BARE, None),
        (replace(BARE, cache="int8", can_quantize=True), None),
        (replace(BARE, can_quantize=True), "int8_cache"),
    ],
)
def test_the_next_step(state: LadderState, step: str | None) -> None:
    assert next_step(state) == step


def test_idle_caches_that_came_meanwhile_do_not_lead_back_up() -> None:
    state = replace(FULL, taken=("evict_idle", "drop_prefix"))
    assert next_step(state) == "smaller_pieces"


def test_every_way_down_ends_after_each_step_once() -> None:
    state, taken = FULL, list[str]()
    while (step := next_step(state)) is not None:
        taken.append(step)
        way = recipe(taken, piece_tokens=512, cache="16bit")
        state = replace(state, taken=tuple(taken), piece_tokens=way.piece_tokens, cache=way.cache)
        assert len(taken) < 20
    assert [s for n, s in enumerate(taken) if s not in taken[:n]] == list(STEPS)
    assert taken.count("smaller_pieces") == 2


@pytest.mark.parametrize(
    "taken, way",
    [
        ((), Recipe(512, "16bit")),
        (("evict_idle", "drop_prefix"), Recipe(512, "16bit")),
        (("smaller_pieces",), Recipe(128, "16bit")),
        (("smaller_pieces", "smaller_pieces", "int8_cache"), Recipe(32, "int8")),
        (("no_cache",), Recipe(512, "16bit", with_cache=False)),
    ],
)
def test_how_the_next_attempt_is_made(taken: tuple[str, ...], way: Recipe) -> None:
    assert recipe(taken, piece_tokens=512, cache="16bit") == way


def test_a_cache_is_never_made_larger() -> None:
    assert recipe(("int8_cache",), piece_tokens=16, cache="int4") == Recipe(16, "int4")


@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_told(step: str) -> None:
    notice = step_notice(step)
    assert notice.code == f"memory_{step}"
    assert notice.text.startswith("Memory ran short, so ")
