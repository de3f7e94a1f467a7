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
        (DEPOSIT, "보증금은 1,200,000원입니다."),
        ("보증금은 1,200,000원이다.", "보증금은 120만 원입니다."),
        ("관객은 120만 명이었다.", "관객은 1,200,000명이었습니다."),
    ],
)
def test_the_same_amount_in_another_form_is_not_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == ()
