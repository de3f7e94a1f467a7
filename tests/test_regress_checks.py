"""Invariants on turns made by hand: each sees the fault that it is for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatbot.messages import Conversation, Message, Notice, PromptTrace, Segment, Turn
from chatbot.regression.assertions import RULES
from chatbot.regression.observation import EngineCall, Observation
from retrieval.types import Citation

DOCUMENT = "The fee is 20 euros. It is due in May."
PASSAGE = Segment(
    "passage", 10, DOCUMENT, document="a.txt", document_id="d", start=0, end=38, label="1"
)
SEGMENTS = (Segment("system", 5, "Be brief."), PASSAGE, Segment("question", 5, "How much?"))
TRACE = PromptTrace("How much?", 20, 100, 28, SEGMENTS)
CITATION = Citation("1", "a.txt", "d", None, 0, 20, "The fee is 20 euros.")
TURN = Turn(
    "t", (Message("m", "user", "How much?"),), (Message("n", "assistant", "20 euros."),),
    citations=(CITATION,), trace=TRACE, reply_token_ids=(40, 41),
)  # fmt: skip
CHAT = Conversation("c")
SEEN = Observation(
    turn=TURN,
    before=CHAT,
    after=replace(CHAT, turns=(TURN,)),
    call=EngineCall(20, (1, 2), 28),
    expected_control_ids=(1, 2),
    forbidden_ids=frozenset({1, 2}),
    window_tokens=128,
    documents=lambda: {"a.txt": DOCUMENT},
)


def cited(**changes: object) -> Observation:
    citation = replace(CITATION, **changes)  # type: ignore[arg-type]
    return replace(SEEN, turn=replace(TURN, citations=(citation,)))


def traced(**changes: object) -> Observation:
    trace = replace(TRACE, **changes)  # type: ignore[arg-type]
    return replace(SEEN, turn=replace(TURN, trace=trace))


def called(**changes: object) -> Observation:
    assert SEEN.call is not None
    return replace(SEEN, call=replace(SEEN.call, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["citations-valid", "no-control-ids", "counted", "question-whole"])
def test_a_sound_turn_has_nothing_to_blame(name: str) -> None:
    verdict = RULES[name].check(SEEN, True)
    assert verdict.holds, verdict.found
    assert not RULES[name].check(SEEN, False).holds


@pytest.mark.parametrize(
    ("name", "seen", "words"),
    [
        ("citations-valid", cited(label="2"), "no passage"),
        ("citations-valid", cited(document_id="e"), "no passage"),
        ("citations-valid", cited(end=60), "no passage"),
        ("citations-valid", cited(quote="The fee is 30 euros."), "does not stand"),
        ("citations-valid", cited(start=1), "does not stand"),
        ("citations-valid", cited(document="b.txt"), "does not stand"),
        ("no-control-ids", called(control_ids=(1, 1, 2)), "control ids"),
        ("no-control-ids", called(control_ids=(2, 1)), "control ids"),
        ("no-control-ids", replace(SEEN, turn=replace(TURN, reply_token_ids=(40, 2))), "stored"),
        ("counted", traced(prompt_tokens=21), "segments of 20"),
        ("counted", called(prompt_tokens=19), "19 ids"),
        ("counted", traced(limit_tokens=19), "exceed the limit"),
        ("counted", called(max_tokens=29), "exceed the window"),
        ("counted", traced(limit_tokens=101), "exceed the window"),
        ("question-whole", traced(segments=(*SEGMENTS[:2], replace(SEGMENTS[2], text="How"))), ""),
    ],
)
def test_a_fault_is_seen(name: str, seen: Observation, words: str) -> None:
    verdict = RULES[name].check(seen, True)
    assert not verdict.holds and words in verdict.found


def test_a_question_that_was_shortened_with_a_notice_is_whole_enough() -> None:
    seen = traced(segments=(*SEGMENTS[:2], replace(SEGMENTS[2], text="How")))
    told = replace(seen, turn=replace(seen.turn, notices=(Notice("question_shortened", "x"),)))
    assert RULES["question-whole"].check(told, True).holds
