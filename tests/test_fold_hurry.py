"""Somebody who always asks before a summary is written: sentences of the turns stand in for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chatbot.chat import TextDelta, TurnDone
from chatbot.engine.scripted import ScriptedReply
from chatbot.fold_history import backoff_of
from chatbot.fold_job import MOST_CUT_OFF
from chatbot.messages import FoldDecision
from tests.fold_rig import WINDOW_TOKENS, Rig

GOOD = "The user assigns numbered chairs to rooms, and the assistant takes note of it."

QUESTIONS = tuple(
    f"Should the {lamp} lamp stand in the {room}, or is there a better place among the rooms?"
    for lamp, room in (("green", "hall"), ("old", "attic"), ("tall", "cellar"), ("small", "shed"))
)


def unfinished(prompt: str) -> ScriptedReply:
    """A summary that is not there yet when the next question comes, however slow the machine."""
    return ScriptedReply("The user assigns", stall_after_tokens=1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, unfinished, summary_tokens=160)
    yield rig
    rig.close()


def hurry(rig: Rig, turns: int, start: int = 0) -> None:
    """Ask without waiting for folds."""
    for n in range(start, start + turns):
        text = f"Item {n}: the chair number {100 + n} goes to room {n}."
        *_, last = rig.chat.reply(rig.id, text)
        assert isinstance(last, TurnDone) and last.turn.finish == "stop"


def backlog_tokens(rig: Rig) -> int:
    conversation = rig.store.load(rig.id)
    covered = conversation.summary.covers if conversation.summary else 0
    encoder = rig.chat.builder.encoder
    return sum(encoder.turn(turn).tokens for turn in conversation.turns[covered:])


def test_a_summary_is_there_and_says_why_it_has_no_model(rig: Rig) -> None:
    most = 0
    for n in range(40):
        hurry(rig, 1, start=n)
        most = max(most, backlog_tokens(rig))
        # The call that follows a turn may begin only after the next question has come.
        assert len(rig.summary_prompts) <= n + 1, "at most one call a turn"
    longest = max(rig.chat.builder.encoder.turn(t).tokens for t in rig.store.load(rig.id).turns)
    assert most <= 0.5 * WINDOW_TOKENS + (MOST_CUT_OFF + 1) * longest
    conversation = rig.store.load(rig.id)
    assert conversation.summary is not None and conversation.summary.origin == "extractive"
    # Not always in the very last: on a slow machine a fold may still hold the chat as it comes.
    first = conversation.summary.text.splitlines()[0]
    assert any(first in prompt for prompt in rig.chat_prompts[-5:])
    assert len(conversation.turns) == 40
    spared, made = rig.store.fold_decisions(rig.id)[:2]
    assert "cut off by the next question" in spared.reasons[0] and not spared.accepted
    assert made.accepted and made.origin == "extractive"


def test_a_model_writes_the_next_one_when_it_is_given_the_time(rig: Rig) -> None:
    rig.summarise = unfinished
    for n in range(20):
        list(rig.chat.reply(rig.id, QUESTIONS[n % 4]))
    summary = rig.store.load(rig.id).summary
    assert summary is not None and summary.origin == "extractive"
    rig.summarise = lambda prompt: "The user asks where the lamps should stand in the rooms."
    for n in range(20):
        rig.ask(QUESTIONS[n % 4])
    summary = rig.store.load(rig.id).summary
    assert summary is not None and summary.origin == "model"
    known = rig.chat._fold_job._backoffs[rig.id]
    assert backoff_of(rig.store.fold_decisions(rig.id)) == known


def test_replies_that_are_always_stopped_do_not_keep_a_summary_away(rig: Rig) -> None:
    for n in range(30):
        events = rig.chat.reply(rig.id, f"Item {n}: the chair {100 + n} goes to room {n}.")
        for event in events:
            if isinstance(event, TextDelta):
                rig.chat.stop(rig.id)
    turns = rig.store.load(rig.id).turns
    assert {turn.finish for turn in turns} == {"cancelled"}
    assert rig.summary_prompts == []
    assert rig.store.load(rig.id).summary is not None


def test_folds_that_end_begin_the_count_anew(rig: Rig) -> None:
    """One that is cut off now and then is made up for by the next one, with a model."""
    rig.summarise = lambda prompt: GOOD
    for n in range(40):
        rig.talk(1, start=2 * n)
        stalled = rig.summarise
        rig.summarise = unfinished
        hurry(rig, 1, start=2 * n + 1)
        rig.summarise = stalled
    decisions = rig.store.fold_decisions(rig.id)
    assert decisions and all(decision.origin == "model" for decision in decisions)


def test_a_long_chat_is_made_up_for_in_parts(rig: Rig) -> None:
    """An import is due at once; no question waits for all of it."""
    job = rig.chat._fold_job
    for n in range(60):
        turn = rig.store.begin_turn(rig.id, f"Item {n}: the chair number {n} goes to room {n}.")
        rig.store.finish_turn(rig.id, replace(turn, finish="stop"))
    covered = []
    for _ in range(8):
        job.make_up(rig.store.load(rig.id), cut_off=True)
        summary = rig.store.load(rig.id).summary
        covered.append(summary.covers if summary else 0)
    assert covered[0] == 0 < covered[1] < covered[2] <= 58
    assert backlog_tokens(rig) <= 0.5 * WINDOW_TOKENS


def test_what_follows_an_unasked_model_is_no_second_refusal() -> None:
    refused = FoldDecision("2026", 4, False, None, ("empty",))
    spared = FoldDecision("2026", 4, False, None, ("model not asked: 2 folds were cut off",))
    made = FoldDecision("2026", 4, True, "extractive", ("sentences of the turns themselves",))
    assert backoff_of([refused, made]).refusals == 1
    state = backoff_of([refused, spared, made])
    assert state.refusals == 0 and state.strict
