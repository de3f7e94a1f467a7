"""Chains of corrections: each newer value takes the place of the newest so far, alone."""

from __future__ import annotations

import pytest

from chatbot.corrections import find_corrected
from chatbot.facts import fact_line
from chatbot.line_values import changed_values
from tests.test_corrections import merged

CHAINS = [
    (("Our team has 12 people.", "Anna left, so our team has 11 people.",
      "Two joined: our team is 13 people."), "11 people", "13 people"),
    (("I live in Oslo with my sister.", "I moved to Bergen with my sister.",
      "I moved from Oslo to Ghent, actually."), "Bergen", "Ghent"),
    (("The deadline is 5 October.", "The deadline was moved to 12 October.",
      "Sorry, not 5 October: the deadline was moved to 19 October."), "12 October", "19 October"),
    (("My landlord is called Tom Baker.", "Imke de Vries has taken over as landlord.",
      "Not Tom Baker, my landlord is Omar Said."), "Imke de Vries", "Omar Said"),
    (("Our rent is 850 euros.", "Our rent went up to 900 euros.", "Our rent is 950 euros now.",
      "Our rent was raised from 850 to 990 euros."), "950 euros", "990 euros"),
    (("회의 장소는 3층이에요.", "회의 장소가 5층으로 변경됐어요.",
      "회의 장소가 3층에서 7층으로 변경됐어요."), "5층", "7층"),
    (("제 예약 번호는 QX-1071이에요.", "예약 번호가 QX-1072로 바뀌었어요.",
      "QX-1071이 아니라 예약 번호는 QX-1079예요."), "QX-1072", "QX-1079"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "old", "new"), CHAINS)
def test_each_newer_value_takes_the_place_of_the_newest(
    said: tuple[str, ...], old: str, new: str
) -> None:
    [fact] = merged(*said)
    assert fact.text == said[-1]
    language = "ko" if "가" <= said[0][-2] <= "힣" else "en"
    assert old in fact_line(fact, language) and changed_values(fact.text, fact.earlier) == (
        old,
        new,
    )


def test_two_values_of_a_line_are_two_chains() -> None:
    facts = merged(
        "The dentist is on Tuesday and costs 90 euros.",
        "The dentist was moved to Friday.",
        "The dentist costs 110 euros now.",
        "The dentist was moved to Monday.",
    )
    assert [fact.text for fact in facts] == [
        "The dentist costs 110 euros now.",
        "The dentist was moved to Monday.",
    ]
    assert "from Friday to Monday" in fact_line(facts[1], "en")


def test_the_same_value_again_says_what_it_was_before() -> None:
    [fact] = merged("We are 12 guests.", "Sorry, we are 11 guests.", "So we are 11 guests, not 12.")
    assert "from 12 guests to 11 guests" in fact_line(fact, "en")


@pytest.mark.parametrize(
    ("said", "line", "language", "note"),
    [
        ("제 생일은 6월 9일이고 아내 생일은 5월 3일이에요.", "아, 아내 생일은 5월 5일이에요.", "ko",
         "5월 3일에서 5월 5일로 바뀜; 이전: “제 생일은 6월 9일이고"),
        ("The dentist is on Tuesday and the vet is on Friday.", "The vet was moved to Saturday.",
         "en", "moved from Friday to Saturday; before: “The dentist is on Tuesday and"),
    ],
)  # fmt: skip
def test_of_two_values_that_of_the_same_thing_changes_and_the_other_stays(
    said: str, line: str, language: str, note: str
) -> None:
    [fact] = merged(said, line)
    assert note in fact_line(fact, language)


@pytest.mark.parametrize(
    ("said", "line", "new"),
    [
        ("My blood type is A+.", "I checked my card: my blood type is actually 0 negative.",
         "0 negative"),
        ("제 혈액형은 A형이에요.", "다시 확인해 보니 제 혈액형은 O형이에요.", "O형"),
        ("The party is at 7 pm at Marco's.", "Party's at 8 now!", "8"),
        ("우리 강아지 초코는 세 살이에요.", "초코가 네 살이 됐어요.", "네 살"),
    ],
)  # fmt: skip
def test_one_value_at_a_time(said: str, line: str, new: str) -> None:
    change = find_corrected(line, [said])
    assert change is not None and change.new.endswith(new)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("My blood type is A+.", "My sister's blood type is B."),
        ("제 혈액형은 A형이에요.", "동생 혈액형은 O형이에요."),
        ("The party is at 7 pm at Marco's.", "Dinner's at 8 now!"),
        ("The party is at 7 pm.", "The party is at 7."),
        ("우리 강아지 초코는 세 살이에요.", "조카가 네 살이 됐어요."),
    ],
)
def test_the_value_of_another_thing_or_the_same_value_is_no_change(said: str, line: str) -> None:
    assert find_corrected(line, [said]) is None
