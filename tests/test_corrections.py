"""What a line corrects: in other words, without a subject, in chains, and what it leaves alone."""

from __future__ import annotations

import time

import pytest

from chatbot.corrections import find_corrected, sounds_like_correction
from chatbot.facts import extract_facts, fact_line, merge_facts
from chatbot.line_values import values
from chatbot.linking import linked
from chatbot.messages import Fact, Message, Turn

SAID = (
    "My name is Priya Shah.",
    "The deadline for the grant application is 14 March.",
    "My dentist appointment is on Tuesday at 3pm.",
    "I live in Oslo with my sister.",
    "Our budget for the trip is 900 euros.",
    "I'd like the aisle seat.",
    "I eat fish every week.",
    "The ticket number is QX-4471.",
    "We decided to go with the blue tiles.",
    "My landlord is called Tom Baker.",
    "Priya's birthday is on 3 May.",
    "The conference is in Daejeon on the 5th of June.",
)
SAID_KO = (
    "제 이름은 김서연이에요.",
    "논문 마감일은 3월 14일이에요.",
    "치과 예약은 화요일 오후 3시예요.",
    "저는 부산에 살아요.",
    "여행 예산은 80만 원입니다.",
    "생선을 자주 먹어요.",
    "예약 번호는 QX-4471입니다.",
    "담당자는 박지훈 과장이에요.",
    "결혼식에 120명이 와요.",
)
CORRECTIONS = [
    ("Small update: Imke de Vries has taken over as landlord.", 9, "Tom Baker", "Imke de Vries"),
    ("Actually, the grant deadline has been moved to 21 March.", 1, "14 March", "21 March"),
    ("The deadline for the grant application is 28 March.", 1, "14 March", "28 March"),
    ("My dentist called, the appointment is pushed to Friday.", 2, "Tuesday", "Friday"),
    ("Correction: it's 4pm, not 3pm", 2, "3pm", "4pm"),
    ("I've moved to Bergen with my sister.", 3, "Oslo", "Bergen"),
    ("Change of plan: the trip budget is now 1,200 euros.", 4, "900 euros", "1,200 euros"),
    ("Actually I'd rather have a window seat.", 5, "", ""),
    ("I no longer eat fish.", 6, "", ""),
    ("Sorry, my ticket is QX-4417, not QX-4471.", 7, "QX-4471", "QX-4417"),
    ("We went with green tiles instead.", 8, "", ""),
    ("The landlord turned out to be called Tim Baxter.", 9, "Tom Baker", "Tim Baxter"),
    ("no, I meant Busan", 11, "Daejeon", "Busan"),
]
CORRECTIONS_KO = [
    ("논문 마감이 3월 21일로 바뀌었어요.", 1, "3월 14일", "3월 21일"),
    ("치과 예약을 금요일로 옮겼어요.", 2, "화요일", "금요일"),
    ("치과 예약은 목요일에 잡혔어요.", 2, "화요일", "목요일"),
    ("사실 대전에 살아요.", 3, "부산", "대전"),
    ("여행 예산이 100만 원으로 늘었어요.", 4, "80만 원", "100만 원"),
    ("이제 생선은 안 먹어요.", 5, "", ""),
    ("정정할게: 예약 번호는 QX-4417이야", 6, "QX-4471", "QX-4417"),
    ("담당자가 이민호 과장으로 바뀌었어요.", 7, "박지훈", "이민호"),
    ("하객이 150명으로 늘어났어요, 120명이 아니라요.", 8, "120명", "150명"),
]
NONE = [
    "Sorry, Tom's birthday is on 5 May.",
    "What is the capital?",
    "No, thanks, that's fine.",
    "We have 300 euros more for the trip.",
    "The flight is 120 euros.",
    "The cat is called Muffin.",
    "고마워요, 도움이 됐어요.",
    "호텔은 12만 원이에요.",
]


@pytest.mark.parametrize(("line", "index", "old", "new"), CORRECTIONS)
def test_english(line: str, index: int, old: str, new: str) -> None:
    change = find_corrected(line, SAID)
    assert change is not None
    assert (change.index, change.old, change.new) == (index, old, new)


@pytest.mark.parametrize(("line", "index", "old", "new"), CORRECTIONS_KO)
def test_korean(line: str, index: int, old: str, new: str) -> None:
    change = find_corrected(line, SAID_KO)
    assert change is not None
    assert (change.index, change.old, change.new) == (index, old, new)


@pytest.mark.parametrize("line", NONE)
def test_what_corrects_nothing(line: str) -> None:
    assert find_corrected(line, (*SAID, *SAID_KO)) is None


@pytest.mark.parametrize(
    ("before", "line", "old", "new"),
    [
        ("My dentist appointment is on Tuesday at 3pm.", "Actually, make that Thursday.",
         "Tuesday", "Thursday"),
        ("We have 24 guests.", "Hmm, 26 actually, I forgot the twins.", "24 guests", "26"),
        ("My phone is 555-0199.", "Oops, 555-0190.", "555-0199", "555-0190"),
        ("Meet at Café Luna at 6.", "Let's change that to 7.", "6", "7"),
        ("치과 예약은 화요일 오후 3시예요.", "아니, 목요일로 해 줘", "화요일", "목요일"),
        ("치과 예약은 화요일 오후 3시예요.", "아니, 그게 아니라 4시예요.", "오후 3시", "4시"),
        ("학회는 대전에서 열려요.", "아니, 부산이요", "대전", "부산"),
    ],
)  # fmt: skip
def test_the_line_before_says_what_it_is_about(before: str, line: str, old: str, new: str) -> None:
    change = find_corrected(line, [*SAID[:2], before])
    assert change is not None
    assert (change.index, change.old, change.new) == (2, old, new)


def talk(*texts: str) -> list[Turn]:
    return [Turn(f"t{n}", (Message(f"u{n}", "user", text),)) for n, text in enumerate(texts)]


def merged(*texts: str, cap: int = 1000) -> tuple[Fact, ...]:
    """The list after a fold for each turn."""
    facts: tuple[Fact, ...] = ()
    turns = talk(*texts)
    for n, turn in enumerate(turns):
        new = linked(extract_facts([turn]), extract_facts(turns[:n]), facts)
        facts = merge_facts(facts, new, cap_tokens=cap, count_tokens=lambda text: len(text.split()))
    return facts


@pytest.mark.parametrize("lead_in", ["Small update: ", "Quick correction: ", "정정 사항: "])
def test_a_lead_in_says_nothing_of_the_subject(lead_in: str) -> None:
    said = "My new supervisor is Dalia Haddad, who seems nice."
    found = find_corrected(f"{lead_in}Imke de Vries has taken over as my supervisor.", [said])
    assert found is not None and found.new == "Imke de Vries"


def test_a_correction_says_what_it_was_before_in_the_prompts_words() -> None:
    [fact] = merged("The deadline is 14 March.", "The deadline moved to 21 March.")
    assert fact.earlier == "The deadline is 14 March."
    assert fact_line(fact, "en").endswith("21 March. (moved from 14 March to 21 March)")
    [fact] = merged("마감일은 3월 14일이에요.", "마감일이 3월 21일로 바뀌었어요.")
    assert fact_line(fact, "ko").endswith("(3월 14일에서 3월 21일로 바뀜)")
    [fact] = merged("My rent is 900 euros.", "My rent is 950 euros.")
    assert "changed from 900 euros to 950 euros" in fact_line(fact, "en")
    [fact] = merged("제 월세는 90만 원이에요.", "월세가 95만 원으로 올랐어요.")
    assert "90만 원에서 95만 원으로 바뀜" in fact_line(fact, "ko")


def test_a_chain_keeps_the_newest_and_mentions_the_one_before() -> None:
    [fact] = merged(
        "The deadline is 14 March.",
        "The deadline is 21 March.",
        "Sorry, the deadline has been moved to 28 March.",
    )
    line = fact_line(fact, "en")
    assert "moved from 21 March to 28 March" in line
    assert "14 March" not in line


def test_a_correction_without_a_subject_brings_its_subject_along() -> None:
    [fact] = merged(
        "My dentist appointment is on Tuesday.", "Actually, make that Thursday.", "No, Friday."
    )
    line = fact_line(fact, "en")
    assert "moved from Thursday to Friday" in line
    assert "dentist appointment" in line
    [fact] = merged("치과 예약은 화요일이에요.", "아니, 목요일로 해 줘")
    assert "화요일에서 목요일로 바뀜" in fact_line(fact, "ko")
    assert "치과 예약" in fact_line(fact, "ko")


def test_a_negated_preference_takes_the_place_of_the_old_one() -> None:
    [fact] = merged("I love eating fish on Fridays.", "By the way, I no longer eat fish.")
    assert fact.text == "By the way, I no longer eat fish."
    assert "before: “I love eating fish on Fridays.”" in fact_line(fact, "en")


def test_what_fell_out_of_the_list_is_still_what_was_corrected() -> None:
    facts = merged(
        "My ferry leaves on 14 March from Kiel.",
        *(f"Parcel {n} for Mr Brown weighs {n}.5 kg and costs {n} euros." for n in range(20, 40)),
        "Sorry, the ferry from Kiel leaves on 21 March.",
        cap=30,
    )
    [ferry] = [fact for fact in facts if "ferry" in fact.text]
    assert "moved from 14 March to 21 March" in fact_line(ferry, "en")


def test_pinned_and_edited_facts_stay_and_deleted_ones_do_not_come_back() -> None:
    turns = talk("The deadline is 14 March.", "The deadline is 21 March.")
    old, new = extract_facts(turns)
    pinned = Fact(old.text, old.turn_id, old.message_id, pinned=True, id=old.id)
    edited = Fact("Hand in by the 14th", old.turn_id, old.message_id, edited=True, id=old.id)
    found = linked([new], [old])
    for kept in (pinned, edited):
        facts = merge_facts([kept], found, cap_tokens=0, count_tokens=len)
        assert facts == (kept,)
        facts = merge_facts([kept], found, cap_tokens=999, count_tokens=len)
        assert kept in facts and len(facts) == 2
    again = linked([old])
    assert merge_facts([], again, cap_tokens=999, count_tokens=len, deleted=[old.id]) == ()


def test_items_of_a_series_do_not_replace_each_other() -> None:
    said = [f"Item {n}: the chair number {100 + n} is in room {n}." for n in range(5)]
    assert [fact.earlier for fact in merged(*said)] == [""] * 5


def test_values_of_a_line() -> None:
    found = {
        (v.kind, v.key) for v in values("I call Ana Ruiz on Monday, 3 May at 4:30 pm, PLUM-7.")
    }
    assert {("name", "ana ruiz"), ("day", "w0"), ("date", "5-3"), ("time", "16:30"),
            ("id", "plum-7")} <= found  # fmt: skip


def test_long_and_odd_lines_end_soon() -> None:
    started = time.process_time()
    for line in ("actually " * 500, "1 " * 900, "아니 " * 600, "no, " + "A" * 2000, "…", ""):
        sounds_like_correction(line)
        find_corrected(line, [*SAID, *SAID_KO] * 20)
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("My older daughter is 12 years old.", "My younger daughter is 9 years old."),
        ("The kitchen is 12 square metres.", "The bathroom is 6 square metres."),
        ("The morning train leaves at 7:15.", "The evening train leaves at 18:40."),
        ("첫째 딸은 올해 12살이에요.", "둘째 딸은 올해 9살이에요."),
    ],
)
def test_the_like_of_another_thing_corrects_nothing(said: str, other: str) -> None:
    assert find_corrected(other, [said]) is None


@pytest.mark.parametrize(
    ("said", "line", "old", "new"),
    [
        (
            "제 전화번호는 010-1234-5678이에요.",
            "전화번호가 010-8765-4321로 바뀌었어요.",
            "010-1234-5678",
            "010-8765-4321",
        ),
        ("회의는 오후 3시예요.", "아 참, 회의는 3시 말고 5시예요.", "오후 3시", "5시"),
        ("The meeting is at 3pm.", "Actually, the meeting is at 5:00, not at 3:00.", "3pm", "5:00"),
    ],
)
def test_values_are_told_apart_beside_particles_and_half_days(
    said: str, line: str, old: str, new: str
) -> None:
    change = find_corrected(line, [said])
    assert change is not None
    assert (change.old, change.new) == (old, new)
