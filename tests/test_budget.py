"""The allocation of a prompt: fits always, keeps what is required, changes by one piece a token."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatbot.budget import Allocation, Candidates, ContextBudget, allocate, context_budget
from chatbot.errors import BudgetError


def spent(candidates: Candidates, allocation: Allocation) -> int:
    """The tokens of an allocation, added up independently of the code under test."""
    c = candidates
    total = c.system_tokens + c.question_tokens
    total += c.summary_tokens if allocation.summary else 0
    total += sum(c.turns[: allocation.turns]) + sum(c.passages[: allocation.passages])
    total += sum(c.recalled[i] for i in allocation.recalled)
    total += c.passages_header_tokens if allocation.passages else 0
    total += c.recalled_header_tokens if allocation.recalled else 0
    return total


costs = st.lists(st.integers(1, 400), max_size=14)


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    recalled = draw(costs)
    turns = draw(costs)
    origin = st.one_of(st.none(), st.integers(0, 13))
    return Candidates(
        system_tokens=draw(st.integers(1, 80)),
        question_tokens=draw(st.integers(1, 80)),
        summary_tokens=draw(st.integers(0, 200)),
        turns=turns,
        recalled=recalled,
        passages=draw(costs),
        recalled_turns=draw(st.lists(origin, min_size=len(recalled), max_size=len(recalled))),
        recalled_header_tokens=draw(st.integers(0, 9)),
        passages_header_tokens=draw(st.integers(0, 9)),
    )


def budget(limit: int) -> ContextBudget:
    return ContextBudget(limit_tokens=limit, reply_tokens=32)


@given(candidates(), st.integers(160, 3000))
def test_what_is_counted_is_what_is_taken_and_it_fits(c: Candidates, limit: int) -> None:
    allocation = allocate(budget(limit), c)
    assert allocation.prompt_tokens == spent(c, allocation) <= limit


@settings(max_examples=60)
@given(candidates())
def test_one_token_more_costs_at_most_one_turn_or_passage(c: Candidates) -> None:
    previous = allocate(budget(160), c)
    for limit in range(161, 2048):
        now = allocate(budget(limit), c)
        lost = max(previous.turns - now.turns, 0) + max(previous.passages - now.passages, 0)
        assert lost <= 1, f"{lost} pieces lost at {limit} tokens"
        previous = now


@given(candidates(), st.integers(160, 3000))
def test_an_excerpt_never_stands_beside_its_own_turn(c: Candidates, limit: int) -> None:
    allocation = allocate(budget(limit), c)
    for index in allocation.recalled:
        origin = c.recalled_turns[index]
        assert origin is None or origin >= allocation.turns


def test_everything_goes_in_when_there_is_room() -> None:
    c = Candidates(50, 20, 100, [90] * 12, [40] * 5, [200] * 10, [None] * 5, 4, 6)
    allocation = allocate(budget(10_000), c)
    assert (allocation.turns, allocation.passages, len(allocation.recalled)) == (12, 10, 5)
    assert allocation.summary


def test_required_parts_that_do_not_fit_say_by_how_much() -> None:
    with pytest.raises(BudgetError, match="7 too many") as caught:
        allocate(budget(100), Candidates(60, 47))
    assert caught.value.missing_tokens == 7


def test_the_newest_turn_comes_first_but_a_huge_one_competes() -> None:
    small = allocate(budget(700), Candidates(50, 20, turns=[300], passages=[290, 290]))
    assert (small.turns, small.passages) == (1, 1)
    huge = allocate(budget(700), Candidates(50, 20, turns=[620], recalled=[60] * 12))
    assert huge.turns == 0
    assert len(huge.recalled) == 10


def test_the_shares_decide_who_gets_how_much() -> None:
    c = Candidates(50, 20, turns=[50] * 200, recalled=[50] * 200, passages=[50] * 200)
    allocation = allocate(budget(4070), c)
    assert allocation.passages * 50 == pytest.approx(2000, rel=0.1)
    assert len(allocation.recalled) * 50 == pytest.approx(1000, rel=0.1)


@pytest.mark.parametrize("reply", [255, 256, 300])
def test_a_reply_as_long_as_the_window_is_shortened_and_says_so(reply: int) -> None:
    budget = context_budget(256, reply)
    assert budget.reply_shortened
    assert (budget.limit_tokens, budget.reply_tokens) == (128, 128)


def test_the_automatic_reply_never_shrinks_as_the_window_grows() -> None:
    budgets = [context_budget(window) for window in range(64, 4096)]
    assert all(b.window_tokens == w for b, w in zip(budgets, range(64, 4096), strict=True))
    assert all(a.reply_tokens <= b.reply_tokens for a, b in itertools.pairwise(budgets))
    assert all(a.limit_tokens <= b.limit_tokens for a, b in itertools.pairwise(budgets))
    assert budgets[-1].reply_tokens == 512
