"""The gate of summaries: a list of good and bad ones, and each check on its own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from chatbot.figures import dates, number_forms, numbers
from chatbot.gate_form import loop, question, reply, skeleton
from chatbot.proper_names import english_names, identifiers, korean_names
from chatbot.summary_gate import Candidate, Source, invented, judge, lost, tidy
from tests.gate_list import SHARED, Case, read_cases

CASES = [
    case
    for path in sorted((Path(__file__).parent / "data").glob("gate_*.jsonl"))
    for case in read_cases(path)
]


OWN_REASON = {
    "apology": "apology", "role": "role text|control text", "invented": "invented",
    "lost": "lost", "loop": "loop|same sentence", "language": "language",
    "cut": "breaks off|did not end", "skeleton": "skeleton|placeholder|empty",
    "placeholder": "placeholder|empty", "question": "question", "finish": "did not end",
    "unrelated": "something else", "empty": "empty", "long": "over its cap",
    "exchanged": "exchanged|of another", "turned": "turned round", "stale": "no longer so",
    "roles": "roles exchanged|of another", "itself": "speaks of itself",
    "replaced": "in the place of another", "bound": "bound otherwise",
    "reply": "reply|first person|addresses|tells what|only about the last|repeats",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.kind}-{c.number}")
def test_list(case: Case) -> None:
    verdict = case.verdict()
    assert verdict.accepted == case.accept, (case.candidate.text, verdict.reasons)
    assert case.accept or verdict.reasons, "a refusal needs a reason"
    # Other checks often refuse the same text; a check that sleeps must show all the same.
    reasons = "; ".join(verdict.reasons)
    assert re.search(OWN_REASON.get(case.kind, ""), reasons), (case.candidate.text, reasons)


@pytest.mark.parametrize("kind", OWN_REASON)
def test_each_kind_that_a_check_is_there_for_is_in_the_list(kind: str) -> None:
    if not any(case.kind == kind for case in CASES):
        assert not SHARED.is_dir()
        pytest.skip("needs the measuring data in ../shared/data")


def test_list_is_large_enough_and_in_both_languages() -> None:
    count = Counter((case.accept, case.source.language) for case in CASES)
    assert count[True, "en"] + count[True, "ko"] >= 40
    assert count[False, "en"] + count[False, "ko"] >= 40
    assert min(count.values()) >= 15


def _source(text: str, **values: object) -> Source:
    return Source(text, 1000, "en", **values)  # type: ignore[arg-type]


def test_trimmed_is_accepted_and_said() -> None:
    source = _source("User: Ana wants to buy a red bicycle for her daughter in Oslo.")
    text = "Ana wants a red bicycle for her daughter."
    assert judge(Candidate(text, "stop", 9), source, cap_tokens=20).reasons == ()
    trimmed = judge(Candidate(text, "length", 9, trimmed=True), source, cap_tokens=20)
    assert trimmed.accepted and trimmed.reasons == ("trimmed at a sentence end",)
    assert not judge(Candidate(text, "length", 9), source, cap_tokens=20).accepted


@pytest.mark.parametrize("finish", ["error", "cancelled", "interrupted", "memory", "running"])
def test_unfinished_is_refused_even_when_trimmed(finish: str) -> None:
    source = _source("User: Ana wants to buy a red bicycle for her daughter in Oslo.")
    text = "Ana wants a red bicycle for her daughter."
    verdict = judge(
        Candidate(text, finish, 9, trimmed=True),  # type: ignore[arg-type]
        source,
        cap_tokens=20,
    )
    assert not verdict.accepted


def test_size() -> None:
    source = Source("User: Ana wants to buy a red bicycle for her daughter.", 30, "en")
    text = "Ana wants a red bicycle for her daughter."
    assert judge(Candidate(text, "stop", 29), source, cap_tokens=29).accepted
    assert not judge(Candidate(text, "stop", 29), source, cap_tokens=28).accepted
    assert not judge(Candidate(text, "stop", 30), source, cap_tokens=40).accepted


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("It costs 1,200.", "1200"),
        ("I have three cats.", "3 cats"),
        ("twenty-five guests", "25 guests"),
        ("on 2024-03-15", "15 March 2024"),
        ("5만 원", "50,000원"),
        ("at 4:30 pm", "16:30"),
        ("오후 3시", "15시"),
        ("여덟 명", "8명"),
        ("삼십만 원", "30만 원"),
        ("8만 5천 원", "85,000원"),
        ("1만1천원", "11,000원"),
        ("만 오천 원", "15,000원"),
        ("만 5천 원", "15,000원"),
        ("만 원", "10,000원"),
        ("5천5백만 원", "55,000,000원"),
        ("12만 3,400원", "123,400원"),
        ("3억 2천", "320,000,000원"),
        ("12-kilogram", "12 kg"),
        ("2.50", "2.5"),
        ("10k", "10,000"),
        ("a hundred and twenty", "100"),
    ],
)
def test_equal_figures(said: str, summary: str) -> None:
    known = number_forms(said)
    assert all(number.forms & known for number in numbers(summary)), (known, numbers(summary))


@pytest.mark.parametrize(
    ("said", "summary"),
    [("on 3 June, for 10 days", "10 June"), ("3월 4일과 5일", "3월 9일"), ("March 3", "May 3")],
)
def test_dates_are_compared_as_pairs(said: str, summary: str) -> None:
    assert invented(summary, _source(said))


def test_dates_in_all_forms_are_one() -> None:
    forms = ("14 March", "March 14th", "the 14th of March", "3월 14일", "2024-03-14", "3/14")
    assert {tuple(dates(form)) for form in forms} == {((3, 14),)}


def test_parts_of_korean_amounts_are_no_amounts_of_their_own() -> None:
    assert {f for n in numbers("8만 5천 원, 3억 2천만") for f in n.forms} == {"85000", "320000000"}
    apart = {n.text for text in ("20만 30만 원", "5만 2024년", "이 만 원") for n in numbers(text)}
    assert apart == {"20", "30", "5", "2024", "만"}
    assert numbers("1만 " * 5000) and numbers("만 " * 9000 + "3") and numbers("이" * 9000) == []


def test_very_long_numbers_are_compared_exactly() -> None:
    digits = "1234567890123456789"
    assert invented(digits, _source(digits)) == []
    assert invented(digits[:-1] + "8", _source(digits)) != []
    assert numbers("9" * 5000)


def test_names() -> None:
    text = "The user met Priya Shah in Oslo. Bob said PLUM-7. Planning continues with IBM."
    assert english_names(text) == ["Priya", "Shah", "Oslo", "Bob", "PLUM-7", "IBM"]
    assert identifiers("PLUM-7, 21st, 13kg, 6-year-old, GPT4, 10k, B2B") == [
        "PLUM-7",
        "GPT4",
        "B2B",
    ]
    assert set(korean_names("김민준은 부산에서 한빛병원에 갔다. 이미지 편집과 안정성.")) == {
        "김민준",
        "부산",
        "한빛병원",
    }


def test_derived_forms_are_not_inventions() -> None:
    source = _source("User: I go to Italy with Anna's son and the Smiths.")
    assert invented("The user likes Italian food; Anna and Smith come along.", source) == []
    assert invented("The user goes with Annabelle.", source) == ["Annabelle"]


def test_lost_facts_count_unless_the_fact_list_has_them() -> None:
    source = _source("User: hello there", previous="Omar lives at 22 Elm.")
    assert set(lost("The user says hello.", source)) == {"22", "Omar", "Elm"}
    handed = _source("User: hi", previous="Omar lives at 22 Elm.", facts=("I'm Omar, 22 Elm",))
    assert lost("The user says hello.", handed) == []


def test_a_few_of_very_many_may_go() -> None:
    carried = ", ".join(f"{n}" for n in range(100, 130))
    source = _source("User: hi", previous=f"Values: {carried}.")
    kept = ", ".join(f"{n}" for n in range(100, 128))
    assert lost(kept, source) == []
    assert len(lost("100, 101", source)) == 28


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Summary: A.", "A."),
        ("**Summary:**\nA.", "A."),
        ("Here is a concise summary of the conversation:\n\nA.", "A."),
        ("요약: 가나.", "가나."),
        ("다음은 대화의 요약입니다:\n가나.", "가나."),
        ("  A. ", "A."),
        ("The summary was long.", "The summary was long."),
    ],
)
def test_tidy_takes_headings_off(text: str, wanted: str) -> None:
    assert tidy(text) == wanted


def test_quotes_are_not_the_voice_of_the_summary() -> None:
    assert reply('The assistant said "you should rest" and the user agreed.') is None
    assert reply("The assistant said you should rest.") is not None
    assert question('The user asked "are you there?" and left.') is None
    assert skeleton("Decisions: the user chose oak for the worktops and Tom as builder.") is None
    assert loop("Ana has a cat and Bo has a dog and Cy has a fish.") is None


def test_a_summary_in_another_language_is_judged_by_its_figures_and_its_form() -> None:
    source = Source("User: I am Ana and fly to Oslo on 14 May with 900 euros.", 60, "ko")
    good = "사용자 아나는 5월 14일에 900유로를 가지고 오슬로에 간다."
    assert judge(Candidate(good, "stop", 20), source, cap_tokens=40).reasons == ()
    for bad in (
        good.replace("14", "24"),
        "죄송하지만 요약할 수 없습니다.",
        "Ana flies to Oslo soon.",
    ):
        assert not judge(Candidate(bad, "stop", 20), source, cap_tokens=40).accepted


def test_hostile_texts_end() -> None:
    source = _source("User: hello")
    for text in (
        "a" * 20_000,
        "- " * 10_000,
        "A" * 5_000 + "!" * 5_000,
        "가" * 20_000,
        "\n" * 9_999,
    ):
        assert not judge(Candidate(text, "stop", 5), source, cap_tokens=20).accepted
