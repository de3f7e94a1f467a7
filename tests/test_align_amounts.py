"""Amounts that lost their scale, small counts, rates and units are marked; equal ones are not."""

from __future__ import annotations

import pytest

from retrieval.align import align
from retrieval.context import LabelledPassage
from retrieval.types import Passage


def unsupported(source: str, reply: str) -> tuple[str, ...]:
    passage = Passage(1, "d", "d.txt", source, 0, len(source), 20, 1.0)
    return align(reply, [LabelledPassage("1", passage)], "")[1]


MILLIONS = "Revenue was 3 million euros."
DEPOSIT = "보증금은 120만 원이다."


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (DEPOSIT, "보증금은 120원입니다."),
        (DEPOSIT, "보증금은 12만 원입니다."),
        (DEPOSIT, "보증금은 백삼십만 원입니다."),
        ("보증금은 백이십만 원이다.", "보증금은 130만 원입니다."),
        ("매출은 3억 원이다.", "매출은 3원입니다."),
        ("매출은 1억 2천만 원이다.", "매출은 2천만 원입니다."),
        ("관객은 120만 명이었다.", "관객은 120명이었습니다."),
        (MILLIONS, "Revenue was 3 euros."),
        (MILLIONS, "Revenue was 3 billion euros."),
        ("The town has 12,500 inhabitants.", "The town has 12 inhabitants."),
        ("It costs $3m.", "It costs $3."),
    ],
)
def test_a_figure_without_its_scale_is_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == (reply,)


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (MILLIONS, "Revenue was 3.0 million euros."),
        (MILLIONS, "Revenue was 3,000,000 euros."),
        (MILLIONS, "Revenue was €3 million."),
        (MILLIONS, "Revenue was three million euros."),
        ("Revenue was 3,000,000 euros.", MILLIONS),
        ("It sold 3 to 4 million copies.", "It sold 3 to 4 million copies last year."),
        ("The ratio is 0.5.", "The ratio is .5."),
        (DEPOSIT, "보증금은 120만원입니다."),
        (DEPOSIT, "보증금은 백이십만 원입니다."),
        ("보증금은 백이십만 원이다.", "보증금은 1,200,000원입니다."),
        ("참가비는 삼만오천 원이다.", "참가비는 35,000원입니다."),
        ("휴가는 15일이다.", "휴가는 십오 일입니다."),
        ("교육은 삼십일간 열린다.", "교육은 30일간 열립니다."),
        ("만일 비가 오면 행사를 미룬다.", "만일 비가 오면 행사를 미룹니다."),
        (DEPOSIT, "보증금은 1,200,000원입니다."),
        ("보증금은 1,200,000원이다.", "보증금은 120만 원입니다."),
        ("관객은 120만 명이었다.", "관객은 1,200,000명이었습니다."),
    ],
)
def test_the_same_amount_in_another_form_is_not_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == ()


PUMP = "The pump delivers 40 litres per minute at 3 bar."
OF_TWO = "The warranty lasts two years and costs 120 euros."
BOARD = "The board has seven members from nine towns."


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (OF_TWO, "The warranty lasts three years and costs 120 euros."),
        ("Take two tablets a day.", "Take three tablets a day."),
        (BOARD, "The board has nine members from seven towns."),
        ("하루 두 번 복용한다.", "하루 세 번 복용합니다."),
        ("하루 2회 복용한다.", "하루 세 번 복용합니다."),
        ("직원 세 명이 두 달 동안 일한다.", "직원 두 명이 세 달 동안 일합니다."),
        (PUMP, "The pump delivers 40 litres per hour at 3 bar."),
        (PUMP, "The pump delivers 3 litres per minute at 40 bar."),
        ("The dose is 5 mg per day.", "The dose is 5 mg per week."),
        ("The rent is 900 euros a month.", "The rent is 900 euros a year."),
        ("The train runs at 40 km/h.", "The train runs at 40 km/s."),
        ("펌프는 분당 40리터를 보낸다.", "펌프는 시간당 40리터를 보냅니다."),
        ("회의는 월 2회 열린다.", "회의는 주 2회 열립니다."),
    ],
)
def test_a_small_count_or_a_rate_of_another_thing_is_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == (reply,)
    assert unsupported(source, source) == ()


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (OF_TWO, "The warranty lasts 2 years and costs €120."),
        (BOARD, "The seven members of the board are from nine towns."),
        ("Two old tablets and one new tablet are sold.", "Three tablets are sold."),
        ("Hall A holds ten chairs, hall B holds six chairs.", "Hall B holds six chairs."),
        ("The dose is 5 mg per day.", "The daily dose is 5 mg."),
        ("The dose is 5 mg per day.", "The dose is 5 mg a day."),
        ("The train runs at 40 km/h.", "The train runs at 40 kilometres per hour."),
        ("The rent is 900 euros a month.", "The rent is 900 euros monthly."),
        ("It costs 5 euros and opens twice a week.", "It costs 5 euros."),
        ("주차장 관리비는 한 달에 3만 원이다.", "주차장 관리비는 매달 3만 원입니다."),
        ("관리비는 한 달에 3만 원이다.", "관리비는 월 30,000원입니다."),
        ("하루 두 번 복용한다.", "하루 2회 복용합니다."),
        ("하루 두 번 복용한다.", "매일 두 번 복용합니다."),
        ("3월 12일에 직원 두 명이 왔다.", "직원 두 명이 3월 12일에 왔습니다."),
        ("두 번째 문을 세 번 두드린다.", "두 번째 문을 세 번 두드립니다."),
    ],
)
def test_the_same_count_or_rate_in_other_words_is_not_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == ()
