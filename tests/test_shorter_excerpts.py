"""Recalled excerpts that do not fit whole come in part, where the room would stay empty otherwise;
a summary that has no room is told of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatbot.assemble import AssembledPrompt, assemble
from chatbot.budget import ContextBudget
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer
from chatbot.excerpts import Excerpt
from chatbot.messages import Conversation, Message, RollingSummary, Turn
from chatbot.prompt_pieces import PromptRequest
from chatbot.recalling import within
from chatbot.render import PieceEncoder
from chatbot.shorter_excerpts import shortened

LONG = (
    "We talked about the garden and the fence for a while, and then about the weather. "
    "The roof budget is 1,240 crowns, which the guild pays in two parts over the year. "
    "After that we went through the list of guests for the summer feast once more."
)
KOREAN = "우리 집 지붕은 초록색으로 하기로 했고 지붕 예산은 1237만 원으로 정했습니다 그리고 끝"
LATER = (
    "the roof budget is 1,900 crowns in all, which the town pays at once and not in two parts, as "
    "was said before the meeting of last week in the hall by the harbour."
)
ENCODER = PieceEncoder(ScriptedTokenizer())


def excerpt(text: str, **more: object) -> Excerpt:
    message = Message("m1", "user", text)
    return Excerpt(0, message, 0, len(text), 1.0, **more)  # type: ignore[arg-type]


def prompt(
    limit: int, excerpts: tuple[Excerpt, ...] = (), query: str = "roof budget", summary: str = ""
) -> AssembledPrompt:
    said = f"We settled on another figure: {LATER}"
    turns = tuple(
        Turn(f"t{n}", (Message(f"u{n}", "user", text),), (Message(f"a{n}", "assistant", "Yes."),))
        for n, text in enumerate(("Old.", said))
    )
    known = RollingSummary(summary or "S.", 1, 0)
    return assemble(
        PromptRequest(
            Conversation("c", turns=turns, summary=known),
            "What is the roof budget?",
            system_text="Help.",
            language="en",
            budget=ContextBudget(limit, 16),
            query=query,
            excerpts=excerpts,
        ),
        ENCODER,
    )


def recalled(made: AssembledPrompt) -> list[str]:
    return [s.text for s in made.trace.segments if s.kind == "recalled"]


def test_the_part_around_what_matched_comes_where_the_whole_has_no_room() -> None:
    whole = prompt(2000, (excerpt(LONG),))
    assert LONG in recalled(whole)[0] and "…" not in recalled(whole)[0]
    tokens = whole.trace.prompt_tokens
    made = prompt(tokens - 1, (excerpt(LONG),))
    (text,) = recalled(made)
    assert "The roof budget is 1,240 crowns" in text and "…" in text
    assert not [entry for entry in made.trace.dropped if entry.segment.kind == "recalled"]
    segment = next(s for s in made.trace.segments if s.kind == "recalled")
    assert (segment.start, segment.end) != (0, len(LONG))
    assert LONG[segment.start or 0 : segment.end] in text
    for limit in range(tokens - 1, 60, -7):
        few = prompt(limit, (excerpt(LONG),))
        assert few.trace.prompt_tokens <= limit
        assert all("1,240" in text or "budget" in text for text in recalled(few))


@pytest.mark.parametrize("room", [20, 30, 40])
def test_words_of_a_sentence_that_is_too_long_come_with_what_matched(room: int) -> None:
    made = shortened(excerpt(KOREAN), "지붕 예산이 얼마였지?", lambda e: len(e.text) <= room)
    assert made is not None and len(made.text) <= room
    assert "예산은" in made.text and "1237만" in made.text
    assert made.marks == ("… ", " …") or KOREAN.endswith(made.text)
    assert shortened(excerpt(KOREAN), "지붕", lambda e: False) is None


def test_the_best_match_comes_before_shorter_ones_that_match_less() -> None:
    other = "The fence is green."
    message = Message("m2", "user", other)
    less = Excerpt(0, message, 0, len(other), 0.2)
    whole = prompt(2000, (excerpt(LONG), less))
    assert len(recalled(whole)) == 2
    alone = prompt(2000, (excerpt(LONG),)).trace.prompt_tokens
    for limit in (alone - 1, alone - 6):
        made = prompt(limit, (excerpt(LONG), less))
        assert made.trace.prompt_tokens <= limit
        assert any("1,240 crowns" in text for text in recalled(made)), recalled(made)
    none = prompt(alone - 90, (excerpt(LONG), less))
    assert none.trace.prompt_tokens <= alone - 90


def test_an_excerpt_beyond_the_share_of_recall_comes_in_part() -> None:
    def count(text: str) -> int:
        return len(text.split())

    long = replace(excerpt(f"{'word ' * 90}{LONG}"), tokens=132)
    less = replace(excerpt("The roof is old."), tokens=4)
    found = within((long, less), 80, "roof budget", count)
    assert "1,240 crowns" in found[0].text and found[0].tokens <= 80
    assert within((less, long), 80, "roof budget", count)[0] == less
    assert within((long, less), 20, "roof budget", count) == [less]


def test_a_long_remark_is_not_said_twice() -> None:
    note = f"later: “{LATER}”"
    outdated = excerpt(LONG, note=note, note_of=("u1",), later=(LATER,))
    whole = prompt(2000, (outdated,))
    assert note in recalled(whole)[0], "where all fits, nothing changes"
    (text,) = recalled(prompt(whole.trace.prompt_tokens - 1, (outdated,)))
    assert LONG in text and "(changed later)" in text and LATER not in text
    elsewhere = replace(outdated, later=("something that is nowhere else",))
    (text,) = recalled(prompt(whole.trace.prompt_tokens - 1, (elsewhere,)))
    assert note in text and LONG not in text


def test_a_summary_without_room_is_told_of() -> None:
    summary = "The user talked about the roof, the garden and the guests at some length. " * 4
    for limit, said in ((2000, []), (90, ["summary_left_out"])):
        made = prompt(limit, summary=summary)
        assert [n.code for n in made.trace.notices] == said
