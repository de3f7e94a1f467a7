"""The contrary of a source is marked, also where both deny; what says the same is not."""

from __future__ import annotations

import pytest

from retrieval.align import align
from retrieval.context import LabelledPassage
from retrieval.types import Passage


def unsupported(source: str, reply: str) -> tuple[str, ...]:
    passage = Passage(1, "d", "d.txt", source, 0, len(source), 20, 1.0)
    return align(reply, [LabelledPassage("1", passage)], "")[1]


BADGE = "Visitors may not enter the boiler room without a badge."
PASS = "외부인은 출입증 없이 들어갈 수 없다."
LEAVE = "휴가는 15일이며 사용하지 않으면 이월되지 않는다."


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (BADGE, "Visitors may enter the boiler room without a badge."),
        (BADGE, "Visitors are allowed to enter the boiler room without a badge."),
        (BADGE, "Without a badge, visitors may enter the boiler room."),
        (BADGE, "Visitors may enter the boiler room."),
        ("Staff cannot log in without a token.", "Staff can log in without a token."),
        (
            "You may not smoke here unless you are staff.",
            "You may smoke here unless you are staff.",
        ),
        ("No refunds are given without a receipt.", "Refunds are given without a receipt."),
        (
            "Payments are not accepted if the card is not signed.",
            "Payments are accepted if the card is not signed.",
        ),
        (
            "Cards that are not signed are not accepted.",
            "Cards that are not signed are accepted.",
        ),
        (PASS, "외부인은 출입증 없이 들어갈 수 있습니다."),
        ("사용하지 않으면 이월되지 않는다.", "사용하지 않으면 이월된다."),
        (LEAVE, "사용하지 않은 휴가는 이월됩니다."),
        (
            "신청서를 내지 않은 직원은 지원금을 받지 못한다.",
            "신청서를 내지 않은 직원도 지원금을 받습니다.",
        ),
        ("직원은 지원금을 받지 못합니다.", "직원은 지원금을 받습니다."),
        ("비밀번호를 공유하지 마십시오.", "비밀번호를 공유하십시오."),
        ("음식물 반입을 금한다.", "음식물 반입을 허용합니다."),
    ],
)
def test_a_denial_beside_a_condition_is_not_lost(source: str, reply: str) -> None:
    assert unsupported(source, reply) == (reply,)
    assert unsupported(source, source) == ()


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (BADGE, "Visitors must not enter the boiler room without a badge."),
        (BADGE, "Visitors need a badge to enter the boiler room."),
        (BADGE, "Visitors may enter the boiler room with a badge."),
        (BADGE, "Visitors may enter the boiler room only if they have a badge."),
        (BADGE, "Without a badge, visitors are not allowed to enter the boiler room."),
        (BADGE, "Visitors without a badge are refused at the boiler room."),
        (BADGE, "It is prohibited to enter the boiler room without a badge."),
        ("No refunds are given without a receipt.", "Refunds are not given without a receipt."),
        ("No refunds are given without a receipt.", "Refunds are given with a receipt."),
        (
            "Payments are not accepted if the card is not signed.",
            "If the card is not signed, payments are not accepted.",
        ),
        (
            "Payments are not accepted if the card is not signed.",
            "Payments are declined if the card is not signed.",
        ),
        (
            "Rooms without a window cost less and may be booked.",
            "Rooms without a window cost less.",
        ),
        (
            "Dogs may enter without a leash, but cats are not allowed.",
            "Dogs may enter without a leash.",
        ),
        (
            "미국은 위반하지 않으면 사업을 보장한다는 친서를 보냈지만 한국에 알리지 않았다.",
            "미국은 위반하지 않으면 사업을 보장한다는 친서를 보냈지만 한국에 알리지 않았습니다.",
        ),
        (PASS, "외부인은 출입증 없이는 들어갈 수 없습니다."),
        (PASS, "외부인은 출입증이 있어야 들어갈 수 있습니다."),
        (LEAVE, "사용하지 않은 휴가는 이월되지 않습니다."),
        (
            "신청서를 내지 않은 직원은 지원금을 받지 못한다.",
            "신청서를 내지 않으면 지원금을 받을 수 없습니다.",
        ),
        ("비밀번호를 공유하지 마십시오.", "비밀번호를 공유하면 안 됩니다."),
        ("음식물 반입을 금한다.", "음식물 반입은 금지됩니다."),
        ("음식물 반입을 금한다.", "음식물의 반입을 할 수 없습니다."),
        ("기금한도는 5억 원이다.", "기금한도는 5억 원입니다."),
    ],
)
def test_the_same_denial_in_other_words_is_not_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == ()


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ("Apply before 5 May.", "Apply after 5 May."),
        ("The form is due before noon.", "The form is due after noon."),
        ("Children under 12 enter free.", "Children over 12 enter free."),
        ("Store it below 25 degrees.", "Store it above 25 degrees."),
        ("The north gate is locked at night.", "The south gate is locked at night."),
        ("The eastern hall is heated.", "The western hall is heated."),
        ("Use the left door of the hall.", "Use the right door of the hall."),
        ("The contract ended in 2025.", "The contract started in 2025."),
        ("Refunds are possible within 14 days.", "Refunds are possible after 14 days."),
        ("왼쪽 문을 사용한다.", "오른쪽 문을 사용합니다."),
        ("계약은 2025년에 끝난다.", "계약은 2025년에 시작합니다."),
        ("가격은 부가세 별도이다.", "가격은 부가세 포함입니다."),
        ("19세 이상만 입장한다.", "19세 이하만 입장합니다."),
        ("신청은 5월 5일 이전에 한다.", "신청은 5월 5일 이후에 합니다."),
        ("김 씨는 시험에 합격했다.", "김 씨는 시험에 불합격했습니다."),
        ("이 제품은 유료이다.", "이 제품은 무료입니다."),
    ],
)
def test_a_word_of_the_opposite_meaning_is_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == (reply,)
    assert unsupported(source, source) == ()


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ("Refunds are possible within 14 days.", "After 14 days no refunds are possible."),
        ("The new shop is closed before 9:00.", "The new shop is open after 9:00."),
        ("Children under 12 do not pay the fee.", "Children under 12 do not pay."),
        ("Turn left at the church, then right at the inn.", "Turn right at the inn."),
        ("Tenants have the right to appeal.", "The tenants left with the right to appeal."),
        ("The lease starts on 1 May and ends on 3 June.", "The lease ends on 3 June."),
        ("The tower was built under the engineer Ode.", "The engineer of the tower was Ode."),
        ("The north gate is next to the south gate.", "The south gate is next to the north gate."),
        ("환불은 14일 이내에 가능하다.", "환불은 14일 경과 후 가능하지 않습니다."),
        ("12세 미만 어린이는 공원 입장이 무료다.", "12세 이상 어린이는 공원 입장이 유료다."),
        ("이상이 있으면 전화한다.", "이상이 있으면 전화하세요."),
        ("접수는 3월 2일에 시작하여 4월 30일에 마감한다.", "접수는 3월 2일에 시작합니다."),
        ("주차비는 별도로 낸다.", "주차비는 별도로 냅니다."),
    ],
)
def test_two_opposites_or_the_same_limit_are_not_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == ()
