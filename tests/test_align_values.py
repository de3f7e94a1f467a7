"""Wrong units, times, dates, signs, denials and subjects are marked; equal values are not."""

from __future__ import annotations

import pytest

from retrieval.align import align
from retrieval.context import LabelledPassage
from retrieval.types import Passage

FEES = "| City | Fee |\n| --- | --- |\n| Oslo | 31 |\n| Riga | 47 |"
SIZES = "| 항목 | 값 |\n| --- | --- |\n| 무게 | 3 |\n| 길이 | 4 |\n| 폭 | 7 |"
GATES = "Gate A opens at 8:00. Gate B opens at 9:30."

BORN = "김철수는 서울에서 태어났다. 이영희는 부산에서 태어났다."
TEAMS = "김철수 부장은 2019년부터 영업팀을 맡았다. 이영희 과장은 2021년부터 개발팀을 맡았다."
KINGS = "세종대왕은 훈민정음을 창제하였다. 이순신 장군은 거북선을 만들어 왜군을 물리쳤다."
LEASE = "The lease, signed on 1 May 2020, ends on 30 April 2025."
DEADLINE = "접수는 3월 2일에 시작하여 4월 30일에 마감한다."


def unsupported(source: str, reply: str, question: str) -> tuple[str, ...]:
    passage = Passage(1, "d", "d.txt", source, 0, len(source), 20, 1.0)
    return align(reply, [LabelledPassage("1", passage)], question)[1]


@pytest.mark.parametrize(
    ("source", "reply", "question"),
    [
        ("The lease ends on 14 March 2026.", "The lease ends on 14 May 2026.", "When?"),
        ("The report is due in March. Ask May.", "It is due on 3 June.", ""),
        ("교육은 화요일에 본관에서 열린다.", "교육은 금요일에 본관에서 열린다.", "교육은 언제?"),
        ("3월 4일에 열고 5월 6일에 닫는다.", "3월 6일에 닫는다.", "언제 닫나요?"),
        ("The dose is 5 mg twice a day.", "The dose is 5 g twice a day.", "dose?"),
        ("The tank holds 50 litres.", "The tank holds fifty gallons.", "tank?"),
        ("환불은 7일 이내에 가능합니다.", "환불은 7개월 이내에 가능합니다.", "환불 기간은?"),
        ("가격은 300만원이다.", "가격은 300만달러이다.", "가격?"),
        ("Store vaccines between 2 and 8 °C.", "Store vaccines between -2 and 8 °C.", "temp?"),
        ("기온은 영하 5도이다.", "기온은 5도이다.", "기온?"),
        ("It starts at 7 pm in room 12.", "It starts at 7 am in room 12.", "When does it start?"),
        ("가게는 오전 9시에 연다.", "가게는 오후 9시에 연다.", "가게는 언제 여나요?"),
        ("버스는 오후 2시에 떠난다.", "버스는 02:00에 떠난다.", "버스?"),
        ("반려동물은 입장할 수 없습니다.", "반려동물은 입장할 수 있습니다.", "반려동물 입장?"),
        ("Members can park here.", "Members cannot park here.", "Can members park here?"),
        ("Smoking is prohibited in the hall.", "Smoking is allowed in the hall.", "Is smoking ok?"),
        ("The pump must be switched off now.", "The pump must be switched on now.", "pump?"),
        ("Cars may not park here.", "Cars may park here.", "May cars park here?"),
        ("매출이 5% 증가했다.", "매출이 5% 감소했다.", "매출?"),
        (FEES, "The fee in Oslo is 47.", "What is the fee in Oslo?"),
        (SIZES, "무게는 7이다.", "무게?"),
        (GATES, "Gate A opens at 9:30.", "When does gate A open?"),
        ("A팀은 3명이고 B팀은 5명이다.", "A팀은 5명이다.", "A팀 인원?"),
        ("X weighs 12 kg. Y weighs 15 kg.", "X weighs 15 kg and Y weighs 12 kg.", "weights?"),
        (
            "Ms Brown wrote the plan. Ms White drew the map.",
            "Ms White wrote the plan.",
            "Who wrote it?",
        ),
        ("The tower has twelve floors.", "The tower has thirteen floors.", "floors?"),
        (BORN, "이영희는 서울에서 태어났다.", "이영희는 어디에서 태어났나?"),
        (TEAMS, "이영희 과장은 영업팀을 맡았다.", "이영희 과장은?"),
        (KINGS, "세종대왕은 거북선을 만들었다.", "누가 만들었나?"),
        (
            "Anna Smith was born in Leeds. Ben Jones was born in Bath.",
            "Anna Smith was born in Bath.",
            "Where was Anna Smith born?",
        ),
        (LEASE, "The lease ends on 1 May 2020.", "When does the lease end?"),
        ("Training is on Tuesday, and the exam on Friday.", "The exam is on Tuesday.", "exam?"),
        (DEADLINE, "접수는 3월 2일에 마감한다.", "접수는 언제 마감하나?"),
        ("불량률은 50%였다.", "불량률은 0.5%였다.", "불량률?"),
        ("The factor is 0.5.", "The factor is 50 metres.", "factor?"),
    ],
)
def test_what_is_said_otherwise_is_marked(source: str, reply: str, question: str) -> None:
    assert unsupported(source, reply, question) == (reply,)
    assert unsupported(source, source, question) == ()


@pytest.mark.parametrize(
    ("source", "reply", "question"),
    [
        ("보증금은 300만원이다.", "보증금은 3,000,000원입니다.", "보증금?"),
        ("총 예산은 1억 2천만 원이다.", "총 예산은 120,000,000원입니다.", "예산?"),
        ("회의는 오후 3시 30분에 시작한다.", "회의는 15:30에 시작합니다.", "회의 시간은?"),
        ("The shop opens at 9 am.", "The shop opens at 9:00.", "When does the shop open?"),
        ("It holds twelve people.", "It holds 12 people.", "how many?"),
        ("Three million people came in 2024.", "In 2024, 3,000,000 people came.", "visitors?"),
        ("It sold 3 to 4 million copies.", "It sold 3 million to 4 million copies.", "copies?"),
        ("The budget is $3m.", "The budget is 3,000,000 dollars.", "What is the budget?"),
        ("직원은 세 명이다.", "직원은 3명입니다.", "직원 수?"),
        ("The deposit is €1.200,50.", "The deposit is 1,200.50 euros.", "deposit?"),
        ("The shop is shut on 2026-03-14.", "It is shut on March 14, 2026.", "When is it shut?"),
        ("The share fell by 5 percent.", "It fell by -5 percent.", "What of the share?"),
        ("Refunds take up to 30 days.", "Refunds take no more than 30 days.", "refunds?"),
        ("Prices exclude VAT.", "Prices do not include VAT.", "Do prices include VAT?"),
        ("개는 안 되지만 고양이는 데려올 수 있다.", "고양이는 데려올 수 있습니다.", "고양이?"),
        ("You must not enter without a helmet.", "You may enter with a helmet.", "Who may enter?"),
        (
            "Anna Keller leads it. She wrote the plan.",
            "Anna Keller wrote the plan.",
            "Who wrote it?",
        ),
        ("The pool is closed today.", "No, the pool is closed today.", "Is the pool open today?"),
        ("Ann, who never met Bo, took the old plan.", "Ann took the old plan.", "Who took it?"),
        (
            "음식물은 반입할 수 없지만 물은 가능하다.",
            "물은 반입할 수 있습니다.",
            "물을 반입할 수 있나?",
        ),
        (FEES, "The fee in Riga is 47, and in Oslo 31.", "fees?"),
        (GATES, "Gate B opens at 9:30, and gate A at 8:00.", "gates?"),
        ("Ask in March or in May.", "Ask in May.", "When should I ask?"),
        (BORN, "이영희는 부산에서 태어났습니다.", "이영희는 어디에서 태어났나?"),
        (KINGS, "이순신은 거북선을 만들었습니다.", "누가 만들었나?"),
        ("이영희는 의사이다. 그는 부산에서 태어났다.", "이영희는 부산에서 태어났다.", ""),
        ("김철수는 의사이다. 부산에는 이영희와 김철수가 산다.", "김철수는 부산에 산다.", ""),
        (LEASE, "The lease was signed on 1 May 2020.", "When was it signed?"),
        ("In 2010 the library opened, and the museum in 2012.", "The library opened in 2010.", ""),
        ("Anna met Ben on Monday in Oslo and Friday.", "Anna met Ben on Friday.", ""),
        (DEADLINE, "접수는 4월 30일에 마감합니다.", "접수는 언제 마감하나?"),
        ("The share of women was 50%.", "The share of women was 0.5.", "share?"),
        ("The rate was 0.05.", "The rate was 5%.", "rate?"),
    ],
)
def test_what_is_equal_in_another_form_is_not_marked(
    source: str, reply: str, question: str
) -> None:
    assert unsupported(source, reply, question) == ()
