"""Kinds of lines that take the place of earlier ones, and such that stand beside them."""

from __future__ import annotations

import pytest

from chatbot.corrections import find_corrected

ANOTHER_OF_A_SERIES = (
    ("Invoice 4711 is paid.", "Invoice 4712 is paid."),
    ("Invoice 4711 is paid, 300 euros.", "Invoice 4712 is now open."),
    ("Invoice 4711 came to 300 euros.", "Invoice 4712 came to 450 euros."),
    ("Build 311 failed.", "Build 312 failed again."),
    ("Ticket #881 is closed.", "Now ticket #902 is closed."),
    ("Our order A-17 is late.", "Our order B-22 is late as well."),
    ("Phase 1 ends in March.", "Phase 2 ends in March now."),
    ("The first invoice is number 4711.", "The second invoice is number 4712."),
    ("송장 4711번은 결제됐어요.", "송장 4712번은 결제됐어요."),
)
THE_SAME_THING = (
    ("Invoice 4711 is due on 3 May.", "Invoice 4711 is now due on 9 May."),
    ("My invoice number is 4711.", "Sorry, my invoice number is 4712."),
    ("I take bus 42 to work.", "I take bus 17 to work now."),
    ("The exam is in room B214.", "The exam is now in room B241."),
    ("The caterer charges 38 euros.", "The caterer charges 42 euros now."),
)
OPPOSITES = (
    ("I'm allergic to nuts.", "Turns out I'm not allergic to nuts."),
    ("I'm allergic to nuts.", "The doctor says I'm not allergic to nuts after all."),
    ("I can't eat gluten.", "It turned out I can eat gluten."),
    ("My sister is coming to the party.", "Actually my sister isn't coming to the party."),
    ("My sister lives in Oslo.", "My sister doesn't live in Oslo."),
    ("저는 땅콩 알레르기가 있어요.", "알고 보니 땅콩 알레르기가 아니래요."),
    ("제가 땅콩 알레르기예요.", "검사해 보니 땅콩 알레르기가 없대요."),
    ("우리는 비자가 필요해요.", "알고 보니 비자가 필요 없대요."),
    ("여동생이 파티에 와요.", "알고 보니 여동생은 파티에 안 온대요."),
)
OF_OTHERS = (
    ("I'm allergic to nuts.", "Turns out my brother is not allergic to nuts."),
    ("I'm allergic to nuts.", "Turns out I'm not allergic to shellfish."),
    ("I'm allergic to nuts and shellfish.", "Turns out I'm not allergic to nuts."),
    ("I'm allergic to nuts.", "I'm not sure whether I'm allergic to nuts."),
    ("I have a dog.", "I don't want a dog."),
    ("저는 땅콩 알레르기가 있어요.", "동생은 땅콩 알레르기가 없어요."),
    ("저는 땅콩 알레르기가 있어요.", "알고 보니 새우 알레르기는 없대요."),
    ("딸이 바이올린을 배워요.", "딸이 바이올린을 안 가져왔어요."),
)


@pytest.mark.parametrize(("old", "line"), ANOTHER_OF_A_SERIES)
def test_another_number_of_a_series_stands_beside_the_first(old: str, line: str) -> None:
    assert find_corrected(line, [old]) is None


@pytest.mark.parametrize(("old", "line"), THE_SAME_THING)
def test_a_number_that_is_what_is_told_is_corrected(old: str, line: str) -> None:
    change = find_corrected(line, [old])
    assert change is not None and change.old and change.new


@pytest.mark.parametrize(("old", "line"), OPPOSITES)
def test_the_opposite_takes_the_place_of_what_was_said(old: str, line: str) -> None:
    change = find_corrected(line, ["The train leaves at 9.", old, "We met at noon."])
    assert change is not None and change.index == 1


@pytest.mark.parametrize(("old", "line"), OF_OTHERS)
def test_what_is_denied_of_something_else_takes_no_place(old: str, line: str) -> None:
    assert find_corrected(line, [old]) is None


@pytest.mark.parametrize(
    ("old", "line", "values"),
    [
        ("My sister Clara lives in Ghent.", "My sister moved to Antwerp.", ("Ghent", "Antwerp")),
        ("Clara lives in Ghent.", "Clara moved to Antwerp.", ("Ghent", "Antwerp")),
        ("My dentist is Clara.", "My dentist moved to Antwerp.", None),
        ("The wedding of Clara is in May.", "The wedding was moved to Antwerp.", None),
        ("담당자는 김민수 씨예요.", "담당자가 부산으로 옮겼어요.", None),
        ("My doctor is Omar.", "I changed my doctor to Clara.", ("Omar", "Clara")),
        ("담당자는 김민수 씨예요.", "담당자가 박지영 씨로 변경됐어요.", ("김민수", "박지영")),
    ],
)
def test_a_place_does_not_take_the_place_of_a_person(
    old: str, line: str, values: tuple[str, str] | None
) -> None:
    change = find_corrected(line, [old])
    assert (change and (change.old, change.new)) == values


@pytest.mark.parametrize(
    ("old", "line"),
    [
        ("회의 장소는 3층이에요.", "회의 장소가 5층으로 변경됐어요."),
        ("강아지 이름은 초코예요.", "강아지 이름을 보리로 다시 지었어요."),
        ("팀 이름은 나래예요.", "팀 이름을 새로 지었어요, 가온이에요."),
    ],
)
def test_korean_words_of_change_are_known(old: str, line: str) -> None:
    assert find_corrected(line, [old]) is not None
