"""What is supposed, past or denied takes no place of what holds; what only looks like it does."""

from __future__ import annotations

import pytest

from chatbot.corrections import find_corrected

RENT, RENT_KO = "My rent is 850 euros.", "월세는 85만 원이에요."
EXAM, EXAM_KO = "The exam is on 14 March.", "시험은 3월 14일이에요."
LIVES, LIVES_KO = "I live in Oslo with my sister.", "저는 부산에 살아요."
MEETS, MEETS_KO = "The meeting is on Monday.", "회의는 월요일이에요."
UNREAL = [
    (RENT, "If my rent were 950 euros I would move out."),
    (RENT, "I'd move out if my rent was 950 euros."),
    (RENT, "My rent would be 950 euros with a garage."),
    (RENT, "My rent might be 950 euros next year."),
    (RENT, "My rent could have been 950 euros."),
    (RENT, "I wish my rent was 750 euros."),
    (RENT, "My rent was 800 euros last year."),
    (RENT, "Last year my rent was 800 euros."),
    (RENT, "My rent used to be 800 euros."),
    (RENT, "Two years ago my rent was 700 euros."),
    (RENT, "My rent was 800 euros until recently."),
    (RENT, "My previous rent was 800 euros."),
    (RENT, "My rent is not 950 euros."),
    (RENT, "My rent isn't 950 euros, actually."),
    (RENT, "My brother says my rent is 950 euros, but that is wrong."),
    (RENT, "My landlord wanted to raise my rent to 950 euros but I refused."),
    (RENT, "Actually, my rent would have been 950 euros."),
    (RENT, "Once my rent is 950 euros I will move out."),
    (EXAM, "My friend says the exam is on 21 March, but she is wrong."),
    (EXAM, "The website says the exam is on 21 March, which is not true."),
    (EXAM, "I thought the exam was on 21 March."),
    (EXAM, "Nobody said the exam is on 21 March."),
    (EXAM, "If it snows, the exam is moved to 21 March."),
    (EXAM, "The exam is moved to 21 March if it snows."),
    (EXAM, "The exam was supposed to be moved to 21 March."),
    (EXAM, "The exam was almost moved to 21 March, but they couldn't find a room."),
    ("My passport expires on 3 May 2029.",
     "My passport could have expired on 3 May 2027, luckily it did not."),
    (LIVES, "I used to live in Bergen with my sister."),
    (LIVES, "I could have moved to Bergen with my sister."),
    (LIVES, "Before that I lived in Bergen with my sister."),
    (MEETS, "I wanted to move the meeting to Friday but it can't be done."),
    (MEETS, "It's not true that the meeting was moved to Friday."),
    (RENT_KO, "월세가 95만 원이면 이사 갈 거예요."),
    (RENT_KO, "월세가 95만 원이라면 이사 갔을 거예요."),
    (RENT_KO, "만약 월세가 95만 원으로 오르면 이사 갈 거예요."),
    (RENT_KO, "월세가 75만 원이었으면 좋겠어요."),
    (RENT_KO, "작년 월세는 80만 원이었어요."),
    (RENT_KO, "예전에는 월세가 80만 원이었어요."),
    (RENT_KO, "옛날 월세는 70만 원이었습니다."),
    (RENT_KO, "2년 전에는 월세가 70만 원이었어요."),
    (RENT_KO, "월세가 95만 원으로 오를 뻔했어요."),
    (RENT_KO, "월세가 95만 원으로 오를 수도 있어요."),
    (RENT_KO, "월세가 95만 원인 줄 알았어요."),
    (RENT_KO, "월세가 95만 원은 아니에요."),
    (RENT_KO, "월세가 95만 원으로 오를 예정이었는데 취소됐어요."),
    (EXAM_KO, "친구는 시험이 3월 21일이라고 하는데 틀렸어요."),
    (EXAM_KO, "시험이 3월 21일이라는 말은 사실이 아니에요."),
    (EXAM_KO, "시험이 3월 21일로 바뀌었다고 하는데 거짓말이에요."),
    (EXAM_KO, "비가 오면 시험은 3월 21일로 바뀌어요."),
    (EXAM_KO, "시험이 3월 21일로 바뀔지도 몰라요."),
    (MEETS_KO, "회의를 금요일로 옮기려고 했는데 안 됐어요."),
    (MEETS_KO, "팀장님이 회의를 금요일로 미루자고 했지만 거절했어요."),
    (MEETS_KO, "회의가 금요일로 바뀌지 않았어요."),
    (MEETS_KO, "회의가 금요일로 바뀌면 좋겠어요."),
    (MEETS, "The meeting was nearly moved to Friday."),
    (LIVES_KO, "저는 예전에 대전에 살았어요."),
]  # fmt: skip
REAL = [
    (RENT, "My rent used to be 850 euros, now it is 900 euros.", "900 euros"),
    (RENT, "Last year my rent was 800 euros, but now it is 900 euros.", "900 euros"),
    (RENT, "If you need it for the form, my rent is now 900 euros.", "900 euros"),
    (RENT, "My rent was raised to 900 euros last month.", "900 euros"),
    (RENT, "I was wrong, my rent is 900 euros, not 850.", "900 euros"),
    (RENT, "I should have said that my rent is 900 euros.", "900 euros"),
    (EXAM, "My teacher says the exam is on 21 March, I was wrong.", "21 March"),
    (EXAM, "The exam was moved to 21 March two weeks ago.", "21 March"),
    (EXAM, "It is not on 14 March: the exam is on 21 March.", "21 March"),
    (EXAM, "They told us the exam would be on 21 March instead.", "21 March"),
    (LIVES, "I moved to Bergen with my sister last year.", "Bergen"),
    (MEETS, "Can you note that the meeting was moved to Friday, if possible.", "Friday"),
    (RENT_KO, "작년에는 85만 원이었는데 지금은 월세가 90만 원이에요.", "90만 원"),
    (RENT_KO, "지난달에 월세가 90만 원으로 올랐어요.", "90만 원"),
    (EXAM_KO, "제가 잘못 알았어요, 시험은 3월 21일이에요.", "3월 21일"),
    (EXAM_KO, "시험이 3월 21일이라고 해요, 제가 틀렸어요.", "3월 21일"),
    (EXAM_KO, "알고 보면 별일 아닌데, 시험이 3월 21일로 바뀌었어요.", "3월 21일"),
    (MEETS_KO, "회의를 금요일로 바꿨으면 좋겠어요.", "금요일"),
    (MEETS_KO, "회의는 금요일로 하면 돼요.", "금요일"),
    (MEETS_KO, "회의는 월요일이 아니라 금요일이에요.", "금요일"),
    (MEETS_KO, "원래 회의는 월요일이었는데 금요일로 바뀌었어요.", "금요일"),
]


@pytest.mark.parametrize(("said", "line"), UNREAL)
def test_what_does_not_hold_takes_no_place(said: str, line: str) -> None:
    assert find_corrected(line, [said]) is None


@pytest.mark.parametrize(("said", "line", "new"), REAL)
def test_what_holds_takes_its_place(said: str, line: str, new: str) -> None:
    change = find_corrected(line, [said])
    assert change is not None and change.new == new
