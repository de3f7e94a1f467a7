"""Facts: which lines of the user are kept, corrections, the cap."""

from __future__ import annotations

import pytest

from chatbot.facts import extract_facts, fact_spans, merge_facts, shortened
from chatbot.linking import linked
from chatbot.messages import Fact, Message, Turn
from chatbot.records import fact_id
from chatbot.salience import salience


def count(text: str) -> int:
    return len(text.split())


def facts(*texts: str) -> list[str]:
    turns = [
        Turn(
            f"t{n}", (Message(f"u{n}", "user", text),), (Message(f"a{n}", "assistant", "42 Bob."),)
        )
        for n, text in enumerate(texts)
    ]
    return [fact.text for fact in extract_facts(turns)]


KEPT = [
    "My name is Priya.",
    "The ticket number is QX-4471.",
    "I live in Oslo.",
    "I'm allergic to peanuts.",
    "I prefer trains over planes.",
    "The deadline is 14 March.",
    "We decided on the blue one, for $900.",
    "Actually, it is 21 March instead.",
    "Call me at 555-0199.",
    "제 이름은 김서연이에요.",
    "저는 부산에 살아요.",
    "예산은 80만 원입니다.",
    "땅콩 알레르기가 있어요.",
    "면접은 3월 21일이에요.",
    "빨간색보다 파란색이 더 좋아요.",
    "토요일 말고 일요일로 바꿨어요.",
    "회의는 수요일 오후 3시로 하기로 했어요.",
]
LEFT = [
    "What is the capital of that country?",
    "Thanks, that helps a lot.",
    "Tell me more about it.",
    "Is it cold there?",
    "고마워요, 도움이 됐어요.",
    "더 자세히 알려 주세요.",
    "그건 왜 그런가요?",
]


@pytest.mark.parametrize("text", KEPT)
def test_kept(text: str) -> None:
    assert facts(f"Hello there. {text} Thank you.") == [text]


@pytest.mark.parametrize("text", LEFT)
def test_left(text: str) -> None:
    assert facts(text) == []


def test_only_the_user_and_with_its_place() -> None:
    turns = [
        Turn("t1", (Message("m1", "user", "Hi"),), (Message("m2", "assistant", "I am Bob, 42."),)),
        Turn("t2", (Message("m3", "user", "I am Ana, 35."),)),
    ]
    assert extract_facts(turns) == (
        Fact("I am Ana, 35.", "t2", "m3", id=fact_id("m3", "I am Ana, 35.")),
    )


def test_same_line_once() -> None:
    assert facts("I live in Oslo.", "I live in Oslo!") == ["I live in Oslo."]


def test_long_lines_are_shortened_with_a_mark() -> None:
    long = "I live at 22 Elm Street, " + "which is a very long street, " * 12 + "as you know."
    (line,) = facts(long)
    assert len(line) <= 160
    assert line.endswith(" …")
    assert long.startswith(line.removesuffix(" …"))


@pytest.mark.parametrize("filler", ["x" * 700, "well " * 200, "가" * 500])
def test_of_a_long_line_the_part_that_tells_something_is_kept(filler: str) -> None:
    message = Message("m1", "user", f"{filler} and the code of the gate is MINT-316 by the way.")
    turn = Turn("t1", (message,))
    [fact] = extract_facts([turn])
    assert "the code of the gate is MINT-316" in fact.text
    assert len(fact.text) <= 160 and fact.text.startswith("… ")
    assert fact_spans(turn, fact) == (message, 0, len(message.content))


def test_shortened_at_a_clause() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("one two three, four five six seven", 24) == "one two three …"
    assert shortened("a" * 50, 20) == "a" * 18 + " …"
    assert (
        shortened("비가 와서 집에 있었고 책을 읽었고 음악을 들었다", 20)
        == "비가 와서 집에 있었고 …"
    )


def merged(
    old: list[str], new: list[str], cap: int = 1000, pinned: tuple[str, ...] = ()
) -> list[str]:
    def make(lines: list[str]) -> list[Fact]:
        return [Fact(line, "t", "m", pinned=line in pinned) for line in lines]

    known = make(old)
    result = merge_facts(known, linked(make(new), listed=known), cap_tokens=cap, count_tokens=count)
    return [fact.text for fact in result]


def test_a_new_figure_replaces_the_old_one() -> None:
    assert merged(["The meeting is on 14 March."], ["The meeting is on 21 March."]) == [
        "The meeting is on 21 March."
    ]
    assert merged(["회의는 3월 14일이에요."], ["회의는 3월 21일이에요."]) == [
        "회의는 3월 21일이에요."
    ]


def test_other_figures_of_other_things_stay() -> None:
    old, new = ["Rent is 900 euros."], ["The flight is 120 euros."]
    assert merged(old, new) == old + new
    assert merged(old, ["Rent is 900 euros!"]) == old


def test_cap_keeps_pinned_and_weighty_facts_in_order() -> None:
    old = ["Keep this anyway.", "I like tea."]
    new = ["My ticket is QX-4471 and I fly on 3 May.", "I like rain."]
    kept = merged(old, new, cap=16, pinned=("Keep this anyway.",))
    assert kept == ["Keep this anyway.", "My ticket is QX-4471 and I fly on 3 May."]
    assert merged(old, new, cap=0) == []
    assert merged(old, new, cap=0, pinned=("Keep this anyway.",)) == ["Keep this anyway."]


def test_salience_orders_specifics_above_talk() -> None:
    assert salience("I moved to Oslo on 3 May.").weight > salience("I like rain.").weight
    assert salience("How are things?").weight == 0.0
    assert "correction" in salience("Actually, make it 5 instead.").kinds
