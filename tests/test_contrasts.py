"""Two lines of one pattern about two things both stay; each is corrected by its own news only."""

from __future__ import annotations

import pytest

from chatbot.corrections import find_corrected
from chatbot.facts import extract_facts, merge_facts
from chatbot.linking import linked
from chatbot.messages import Fact, Message, Turn

PAIRS = (
    ("Check-in is at 15:00.", "Check-out is at 11:00."),
    ("The morning pill is 5 mg.", "The evening pill is 10 mg."),
    ("Plan A costs 300 euros.", "Plan B costs 450 euros."),
    ("My left eye is -2.5.", "My right eye is -3.0."),
    ("The flight out is on 3 May.", "The flight back is on 10 May."),
    ("The old office is in Leeds.", "The new office is in York."),
    ("Vitamin C is 500 mg.", "Vitamin D is 20 mg."),
    ("The early train is at 6:10.", "The late train is at 22:40."),
    ("His appointment is on Monday.", "Her appointment is on Wednesday."),
    ("My upper blood pressure is 128.", "My lower blood pressure is 82."),
    ("Team Red has 12 people.", "Team Blue has 15 people."),
    ("The Monday class is in room 4.", "The Friday class is in room 9."),
    ("체크인은 15시예요.", "체크아웃은 11시예요."),
    ("아침 약은 5mg이에요.", "저녁 약은 10mg이에요."),
    ("A안은 300만 원이에요.", "B안은 450만 원이에요."),
    ("비타민 C는 500mg이에요.", "비타민 D는 20mg이에요."),
    ("왼쪽 눈은 -2.5예요.", "오른쪽 눈은 -3.0이에요."),
    ("앞 타이어는 2.5바예요.", "뒤 타이어는 2.8바예요."),
    ("헌 노트북은 8기가예요.", "새 노트북은 32기가예요."),
    ("작은 상자는 3kg이에요.", "큰 상자는 9kg이에요."),
    ("우리 팀은 5명이에요.", "옆 팀은 9명이에요."),
    ("가는 비행기는 5월 3일이에요.", "오는 비행기는 5월 10일이에요."),
    ("1차 면접은 월요일이에요.", "2차 면접은 목요일이에요."),
)
NAMED_BY_VALUES = (
    ("Tom is allergic to nuts.", "Anna is allergic to nuts."),
    ("Monday is a holiday.", "Tuesday is a holiday."),
    ("KX-1 is broken.", "KX-2 is broken."),
    ("월요일은 휴무입니다.", "화요일은 휴무입니다."),
    ("3층은 회의실이에요.", "4층은 회의실이에요."),
    ("Room 12 is taken.", "Room 14 is taken."),
)
"""Only without "now": then the one is given up for the other."""
OPENED = {"en": ("Now {}", "Actually, {}"), "ko": ("이제 {}", "사실 {}")}
THIRD = (
    (0, "Check-out has moved to 10:30.", 1),
    (0, "Actually, check-in is at 16:00.", 0),
    (0, "Check-out is at 10:00.", 1),
    (2, "Plan A went up to 320 euros.", 0),
    (2, "Plan B costs 480 euros.", 1),
    (3, "My left eye is now -2.75.", 0),
    (4, "The flight back was moved to 12 May.", 1),
    (4, "The flight out is on 4 May.", 0),
    (5, "The new office is in Hull, not York.", 1),
    (12, "체크인이 16시로 바뀌었어요.", 0),
    (13, "사실 아침 약은 7mg이에요.", 0),
    (14, "A안은 320만 원으로 변경됐어요.", 0),
    (16, "이제 오른쪽 눈은 -3.25예요.", 1),
)
DENIED = (
    ("My left eye hurts.", "My right eye doesn't hurt."),
    ("Plan A is possible.", "Plan B is not possible."),
    ("I drink coffee in the morning.", "I don't drink coffee in the evening."),
    ("왼쪽 눈은 아파요.", "오른쪽 눈은 안 아파요."),
)


@pytest.mark.parametrize("pair", PAIRS)
def test_neither_of_two_things_takes_the_place_of_the_other(pair: tuple[str, str]) -> None:
    for old, line in (pair, pair[::-1]):
        assert find_corrected(line, [old]) is None
        language = "ko" if any("가" <= letter <= "힣" for letter in line) else "en"
        for opening in OPENED[language]:
            assert find_corrected(opening.format(line), [old]) is None


@pytest.mark.parametrize(("old", "line"), NAMED_BY_VALUES)
def test_the_same_said_of_another_one_gives_up_nothing(old: str, line: str) -> None:
    assert find_corrected(line, [old]) is None
    assert find_corrected(old, [line]) is None


@pytest.mark.parametrize(("pair", "line", "corrects"), THIRD)
def test_a_correction_finds_the_one_of_two_that_it_is_about(
    pair: int, line: str, corrects: int
) -> None:
    for said, place in ((PAIRS[pair], corrects), (PAIRS[pair][::-1], 1 - corrects)):
        change = find_corrected(line, said)
        assert change is not None
        assert change.index == place
    # Where it was never said, the other one is no less true.
    assert find_corrected(line, [PAIRS[pair][1 - corrects]]) is None


@pytest.mark.parametrize(("old", "line"), DENIED)
def test_what_is_denied_of_the_other_one_leaves_the_first(old: str, line: str) -> None:
    assert find_corrected(line, [old]) is None


def test_both_lines_are_in_the_list_of_facts() -> None:
    facts: tuple[Fact, ...] = ()
    said = [Turn(f"t{n}", (Message(f"m{n}", "user", text),)) for n, text in enumerate(PAIRS[0])]
    for n, turn in enumerate(said):
        new = linked(extract_facts([turn]), extract_facts(said[:n]), facts)
        facts = merge_facts(facts, new, cap_tokens=100, count_tokens=len)
    assert [(fact.text, fact.earlier) for fact in facts] == [(text, "") for text in PAIRS[0]]
