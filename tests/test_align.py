"""Replies back to their sources: right places, wrong numbers and names, in both languages."""

from __future__ import annotations

import pytest

from retrieval.align import align, best_sentence
from retrieval.context import LabelledPassage
from retrieval.types import Passage


def labelled(label: str, text: str, document: str, start: int = 0) -> LabelledPassage:
    passage = Passage(1, document, document, text, start, start + len(text), 1, 1.0, page=7)
    return LabelledPassage(label, passage)


GUIDE = labelled(
    "1",
    "# Lens\n\nThe lighthouse was built in 1898 under the engineer Mary Ode. The lens is cleaned on"
    " the first Monday of each month; wear cotton gloves and use rain water only. The BIGBANG lamp"
    " costs £30m.",
    "guide.md",
    start=100,
)
RULES = labelled(
    "2",
    "등대는 1898년에 김하늘의 설계로 세워졌다. 렌즈는 매달 첫째 월요일에 닦으며, 면장갑을 낀다."
    " 관리비는 한 달에 3만 원이다.",
    "규정.txt",
)
SOURCES = [GUIDE, RULES]


@pytest.mark.parametrize(
    ("reply", "quoted"),
    [
        ("The lighthouse was built in 1898 [1].", "built in 1898"),
        ("According to the document, the engineer was Mary Ode.", "Mary Ode"),
        ("1. Wear cotton gloves.", "cotton gloves"),
        ("Use rain water.", "rain water"),
        ("It costs £30m.", "£30m"),
        ("등대는 1898년에 세워졌습니다.", "1898년"),
        ("문서에 따르면 정답은 김하늘입니다.", "김하늘"),
        ("관리비는 3만 원이에요.", "3만 원"),
        ("정답은 BIGBANG입니다.", "BIGBANG"),
    ],
)
def test_a_right_statement_is_cited_where_it_stands(reply: str, quoted: str) -> None:
    [citation], unsupported = align(reply, SOURCES)
    assert unsupported == ()
    source = GUIDE if citation.document == "guide.md" else RULES
    offset = source.passage.start
    assert source.passage.text[citation.start - offset : citation.end - offset] == citation.quote
    assert quoted in citation.quote
    assert citation.page == 7


@pytest.mark.parametrize(
    "reply",
    [
        "The lighthouse was built in 1899.",
        "The engineer was Mary Oak.",
        "It was built in 1898 under the engineer John Smith.",
        "The keeper lives in Lisbon with two dogs.",
        "등대는 1889년에 세워졌습니다.",
        "문서에 따르면 정답은 박하늬입니다.",
        "관리비는 4만 원이에요.",
    ],
)
def test_a_wrong_statement_is_marked(reply: str) -> None:
    citations, unsupported = align(reply, SOURCES)
    assert citations == ()
    assert unsupported == (reply,)


@pytest.mark.parametrize(
    "reply", ["Sure! Is there anything else?", "감사합니다. 네, 알겠습니다.", "Yes.", ""]
)
def test_what_states_nothing_is_neither(reply: str) -> None:
    assert align(reply, SOURCES) == ((), ())


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ("The flat allows dogs.", "Dogs are not allowed in the flat."),
        ("Dogs are not allowed in the flat.", "The flat allows dogs and cats."),
        ("개를 아파트에서 키울 수 있습니다.", "아파트에서 개를 키울 수 없습니다."),
    ],
)
def test_a_denial_does_not_support_its_opposite(reply: str, source: str) -> None:
    assert align(reply, [labelled("1", source, "lease.md")]) == ((), (reply,))
    citations, unsupported = align(source, [labelled("1", source, "lease.md")])
    assert len(citations) == 1 and unsupported == ()


MAY_AND_JUNE = "Sales were 40 units in May and 75 in June."
TICKETS = "The adult ticket costs 12 euros, and the child ticket 8 euros."
OFFICES = "서울은 지점이 3곳이고 부산은 지점이 5곳이다."
TABLE = "| Month | Units |\n| --- | --- |\n| April | 40 |\n| June | 75 |"


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (MAY_AND_JUNE, "Sales were 75 units in June [1].", "Sales were 75 units in May [1]."),
        (MAY_AND_JUNE, "In May there were 40 units.", "In June there were 40 units."),
        (MAY_AND_JUNE, "Sales rose to 75 units.", ""),
        (MAY_AND_JUNE, MAY_AND_JUNE, ""),
        (TICKETS, "The child ticket costs 8 euros.", "The child ticket costs 12 euros."),
        (TICKETS, "An adult pays 12 euros.", "An adult pays 8 euros."),
        (TICKETS, "Tickets cost 12 euros or 8 euros.", ""),
        (OFFICES, "부산에는 지점이 5곳 있습니다.", "서울에는 지점이 5곳 있습니다."),
        (TABLE, "In June there were 75 units.", "In April there were 75 units."),
        ("Built in 1898, the tower was repaired in 1910.", "The tower was repaired in 1910.", ""),
        ("In Oslo it is -5 and in Rome 17.", "Rome has 17.", "Oslo has 17."),
    ],
)
def test_a_number_of_another_thing_is_no_support(source: str, right: str, wrong: str) -> None:
    sources = [labelled("1", source, "report.md")]
    citations, unsupported = align(right, sources)
    assert citations and unsupported == ()
    if wrong:
        assert align(wrong, sources) == ((), (wrong,))


def test_the_best_sentence_is_no_heading() -> None:
    text = "# Warranty\n\nWarranty\n\nThe warranty lasts 24 months from purchase."
    best = best_sentence("How long is the warranty?", [labelled("1", text, "manual.md")])
    assert best is not None and "24 months" in best.quote


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (
            "Who signed the rental contract?",
            "Rental contract for the warehouse at Pier 9\n\nThe contract was signed by Margaret "
            "Oldfield on 12 March 2024.",
            "The contract was signed by Margaret Oldfield on 12 March 2024.",
        ),
        (
            "창고 임대 계약서에는 누가 서명했나요?",
            "9번 부두 창고 임대 계약서\n\n계약서에는 김하늘이 2024년 3월 12일에 서명했다.",
            "계약서에는 김하늘이 2024년 3월 12일에 서명했다.",
        ),
        (
            "What is the amount due?",
            "Amount due on 3 May: 918 euros\n\nThe bakery is at the harbour.",
            "Amount due on 3 May: 918 euros",
        ),
    ],
)
def test_the_title_of_a_document_gives_way_to_a_sentence_in_it(
    question: str, text: str, answer: str
) -> None:
    best = best_sentence(question, [labelled("1", text, "contract.pdf")])
    assert best is not None and best.quote == answer


def test_the_question_chooses_between_equal_numbers() -> None:
    text = "The north tower has 24 steps and a bell. The south tower has 24 windows and a clock."
    sources = [labelled("1", text, "towers.txt")]
    [citation], _ = align("It is 24.", sources, "How many windows has the south tower?")
    assert "windows" in citation.quote
    [citation], _ = align("It is 24.", sources, "How many steps has the north tower?")
    assert "steps" in citation.quote


def test_the_best_sentence_is_word_for_word() -> None:
    best = best_sentence("How is the lens cleaned?", SOURCES)
    assert best is not None
    assert best.quote.startswith("The lens is cleaned on the first Monday")
    assert GUIDE.passage.text[best.start - 100 : best.end - 100] == best.quote
    korean = best_sentence("렌즈는 언제 닦나요?", SOURCES)
    assert korean is not None and "월요일" in korean.quote
    assert best_sentence("What is the weather on Mars?", SOURCES) is None
