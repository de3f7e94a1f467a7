"""Lines of the user that come back for a question, with what they were before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatbot.engine.scripted import ScriptedTokenizer
from chatbot.excerpts import Excerpt
from chatbot.fact_recall import FactLines, FactRecall
from chatbot.facts import extract_facts
from chatbot.messages import Conversation, Message, RollingSummary, Turn
from chatbot.prompting import PromptBuilder
from chatbot.settings import Settings

FILLER = [f"I'm trying to sort {n} parcels by weight, can you help me with that?" for n in range(9)]
SAID = ("The ferry leaves on 14 March.", *FILLER, "Sorry, the ferry leaves on 21 March.", *FILLER)
SAID_KO = ("치과 예약은 화요일이에요.", "아니, 목요일로 해 줘", "저는 부산에 살아요.")


def count(text: str) -> int:
    return len(text.split())


def turns(*texts: str) -> tuple[Turn, ...]:
    return tuple(
        Turn(f"t{n}", (Message(f"u{n}", "user", text),), (Message(f"a{n}", "assistant", "Fine."),))
        for n, text in enumerate(texts)
    )


def lines(*texts: str) -> FactLines:
    found = FactLines(count)
    found.sync(turns(*texts))
    return found


def shown(found: FactLines, question: str, language: str = "en") -> list[str]:
    excerpts = [found.excerpt(n, language) for n in found.asked_for(question)]
    return [f"{e.text} ({e.note})" if e.note else e.text for e in excerpts]


def test_the_newest_line_comes_and_says_what_it_was() -> None:
    for question in ("When does the ferry leave?", "Remind me of the ferry."):
        assert shown(lines(*SAID), question) == [
            "Sorry, the ferry leaves on 21 March. (moved from 14 March to 21 March)"
        ]


def test_korean_and_without_a_common_word() -> None:
    found = lines(*SAID_KO)
    [line] = shown(found, "치과 예약이 무슨 요일이죠?", "ko")
    assert line.startswith("아니, 목요일로 해 줘 (화요일에서 목요일로 바뀜")
    assert shown(found, "제가 어느 도시에 산다고 했죠?", "ko")[0] == "저는 부산에 살아요."


@pytest.mark.parametrize("text", ["Thanks, that helps.", "The ferry was late.", "Go on.", ""])
def test_only_questions_ask(text: str) -> None:
    assert lines(*SAID).asked_for(text) == []


def test_follows_edits() -> None:
    found = lines(*SAID)
    found.sync(turns(*SAID[:5]))
    assert shown(found, "When does the ferry leave?") == ["The ferry leaves on 14 March."]
    found.sync(turns(*SAID[:5], "The ferry leaves on 28 March."))
    assert "28 March" in shown(found, "When does the ferry leave?")[0]


def conversation(*texts: str) -> Conversation:
    return Conversation("c", turns=turns(*texts))


def test_an_outdated_excerpt_brings_the_newer_line_along() -> None:
    chat = conversation(*SAID)
    old = chat.turns[0].user[0]
    excerpt = Excerpt(0, old, 0, len(old.content), 1.0, tokens=6)
    found = FactRecall(count).beside(chat, "And then", [excerpt], language="en")
    assert [e.message.id for e in found] == ["u10", "u0"]
    assert found[0].note and found[0].note_of == ("u0",)
    assert found[1].note == "later: “Sorry, the ferry leaves on 21 March.”"
    assert found[1].note_of == ("u10",)


def test_an_excerpt_that_holds_the_line_gets_its_note_and_listed_facts_do_not_come_twice() -> None:
    chat = conversation(*SAID)
    new = chat.turns[10].user[0]
    excerpt = Excerpt(10, new, 0, len(new.content), 1.0, tokens=6)
    recall = FactRecall(count)
    [found] = recall.beside(chat, "When does the ferry leave?", [excerpt], language="en")
    assert found == replace(excerpt, note=found.note, note_of=("u0",)) and found.note
    facts = extract_facts(chat.turns[10:11])
    listed = replace(chat, summary=RollingSummary("S.", 12, 1, facts))
    assert recall.beside(listed, "When does the ferry leave?", [], language="en") == ()


def test_in_the_prompt_with_the_note_and_the_ids_of_both_messages() -> None:
    chat = replace(conversation(*SAID), summary=RollingSummary("They sort parcels.", 18, 5))
    builder = PromptBuilder(ScriptedTokenizer(), Settings(window_tokens=700), None)
    trace = builder.build(chat, "When does the ferry leave?", builder.budget(700)).trace
    old, new = [s for s in trace.segments if s.kind == "recalled" and "21 March" in s.text]
    assert "14 March. (later: “Sorry, the ferry leaves on 21 March.”)" in old.text
    assert "21 March. (moved from 14 March to 21 March)" in new.text
    assert set(old.message_ids) == set(new.message_ids) == {"u10", "u0"}
    off = PromptBuilder(ScriptedTokenizer(), Settings(window_tokens=700, recall_share=0), None)
    trace = off.build(chat, "When does the ferry leave?", off.budget(700)).trace
    assert not any(s.kind == "recalled" for s in trace.segments)


@pytest.mark.parametrize(
    "said",
    [
        ("I live in Oslo with my sister.", "I moved to Bergen with my sister.",
         "I moved from Oslo to Ghent, actually."),
        ("The deadline is 5 October.", "The deadline was moved to 12 October.",
         "Sorry, not 5 October: the deadline was moved to 19 October."),
        ("Our team has 12 people.", "Anna left, so our team has 11 people.",
         "Two joined: our team is 13 people."),
        ("회의 장소는 3층이에요.", "회의 장소가 5층으로 변경됐어요.",
         "회의 장소가 3층에서 7층으로 변경됐어요."),
        ("제 예약 번호는 QX-1071이에요.", "예약 번호가 QX-1072로 바뀌었어요.",
         "QX-1071이 아니라 예약 번호는 QX-1079예요."),
    ],
)  # fmt: skip
def test_what_is_edited_away_leaves_no_trace(said: tuple[str, ...]) -> None:
    live = lines(*said)
    live.sync(turns(*said[:-1]))
    fresh = lines(*said[:-1])
    assert [live.newest(n) for n in range(2)] == [fresh.newest(n) for n in range(2)] == [[1], [1]]
    old = turns(*said)[0].user[0]
    excerpt = Excerpt(0, old, 0, len(old.content), 1.0, tokens=6)
    assert live.with_later(excerpt, "en") == fresh.with_later(excerpt, "en") != excerpt
    for found in (live, fresh):
        found.sync(turns(*said))
    assert live.with_later(excerpt, "en") == lines(*said).with_later(excerpt, "en")


def test_both_values_of_a_line_are_corrected() -> None:
    found = lines(
        "The dentist is on Tuesday and costs 90 euros.",
        "The dentist was moved to Friday.",
        "The dentist costs 110 euros now.",
    )
    assert found.newest(0) == [1, 2]
