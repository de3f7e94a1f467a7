"""Korean names that stand nowhere in the source are marked; other words before titles are not."""

from __future__ import annotations

import pytest

from retrieval.align import align
from retrieval.context import LabelledPassage
from retrieval.types import Passage


def unsupported(source: str, reply: str) -> tuple[str, ...]:
    passage = Passage(1, "d", "d.txt", source, 0, len(source), 20, 1.0)
    return align(reply, [LabelledPassage("1", passage)], "")[1]


BUDGET = "김민수 팀장이 3월 12일에 예산을 승인했다."


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (BUDGET, "박민수 팀장이 예산을 승인했습니다."),
        (BUDGET, "이영희 팀장이 예산을 승인했습니다."),
        (BUDGET, "예산을 승인한 사람은 3월 12일의 김민호 팀장입니다."),
        (BUDGET, "이영희가 3월 12일에 예산을 승인했습니다."),
        ("이수진 과장이 서버를 교체했다.", "이수정 과장이 서버를 교체했습니다."),
        ("김민수가 예산을 승인했다.", "김민호가 예산을 승인했습니다."),
        ("남궁민 대표가 계약서에 서명했다.", "남궁훈 대표가 계약서에 서명했습니다."),
        ("지영 씨가 서버를 교체했다.", "민지 씨가 서버를 교체했습니다."),
        ("한지민 교수님이 실험실을 맡는다.", "한지원 교수님이 실험실을 맡습니다."),
    ],
)
def test_a_person_whom_the_source_lacks_is_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == (reply,)
    assert unsupported(source, source) == ()


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        (BUDGET, "김민수 팀장님이 3월 12일에 예산을 승인했습니다."),
        (BUDGET, "3월 12일에 김민수가 예산을 승인했습니다."),
        (BUDGET, "예산은 김민수 씨가 승인했습니다."),
        ("팀장 김 민수가 예산을 승인했다.", "김민수 팀장이 예산을 승인했습니다."),
        ("민수 씨가 예산을 승인했다.", "김민수 씨가 예산을 승인했습니다."),
        ("영업부의 김민수가 예산을 승인했다.", "영업부 팀장 김민수가 예산을 승인했습니다."),
        ("전산 담당 과장이 서버를 교체했다.", "전산팀 과장이 서버를 교체했습니다."),
        ("회원은 김민수가 승인한 카드를 쓴다.", "이용자는 김민수가 승인한 카드를 씁니다."),
        ("선생님이 교실 문을 연다.", "선생님이 교실 문을 엽니다."),
        ("교체를 맡은 사람은 변호사이다.", "문서에 따르면 정답은 변호사입니다."),
        ("대학의 의사가 진료를 한다.", "대학의 우수한 의사가 진료를 합니다."),
    ],
)
def test_a_known_person_or_another_word_is_not_marked(source: str, reply: str) -> None:
    assert unsupported(source, reply) == ()
