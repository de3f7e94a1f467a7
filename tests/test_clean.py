"""clean: one text with page spans, without running lines and wrapped line ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest

from retrieval.clean import clean
from retrieval.cleaning.widths import columns
from retrieval.cleaning.wrapped import habits
from retrieval.types import CleanDocument, LoadedFile, Page

ENGLISH = (
    "The committee met on the third of May and agreed that the budget for the coming year should "
    "be raised by four per cent, provided that the annual report is published before the end of "
    "June and that every member has had the time to comment on its state-of-the-art figures."
)
KOREAN = (
    "이 법은 근로자의 휴가에 관한 사항을 정하여 근로자의 기본적 생활을 보장하고 향상시키며 "
    "균형 있는 국민경제의 발전을 꾀하는 것을 목적으로 한다. 사용자는 근로자가 청구한 "
    "시기에 휴가를 주어야 하며 휴가 기간에 대하여는 취업규칙에서 정하는 통상임금 또는 "
    "평균임금을 지급하여야 한다. 다만 근로자가 청구한 시기에 휴가를 주는 것이 사업 운영에 "
    "막대한 지장이 있는 경우에는 그 시기를 변경할 수 있다."
)


def by_words(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def anywhere(text: str, width: int) -> list[str]:
    """Lines of `width` Hangul syllables, that is of twice as many columns."""
    lines = [""]
    for letter in text:
        if columns(lines[-1] + letter) > 2 * width:
            lines.append("")
        lines[-1] += letter
    return lines


def pdf(pages: Sequence[Sequence[str]], labels: bool = False) -> CleanDocument:
    return checked(loaded_pdf(pages, labels))


def loaded_pdf(pages: Sequence[Sequence[str]], labels: bool = False) -> LoadedFile:
    found = tuple(
        Page(at, "\n".join(lines), str(at + 216) if labels else None)
        for at, lines in enumerate(pages, 1)
    )
    return LoadedFile("a.pdf", "pdf", found)


def plain(text: str, media: str = "txt") -> CleanDocument:
    return checked(LoadedFile(f"a.{media}", media, (Page(None, text),)))


def checked(loaded: LoadedFile) -> CleanDocument:
    """The contract of every result: spans lie end to end over the whole text."""
    document = clean(loaded)
    ends = [0, *(span.end for span in document.pages)]
    assert [span.start for span in document.pages] == ends[:-1] and ends[-1] == len(document.text)
    assert [span.number for span in document.pages] == [page.number for page in loaded.pages]
    return document


def body(at: int) -> list[str]:
    """Eight lines that no other page has."""
    names = [f"{first}{at}{last}" for first in ("ann", "bob", "cy") for last in ("son", "ley")]
    text = f"Item {at * 7} was decided by {', '.join(names)} and the others who had come. "
    return by_words(text + ENGLISH.replace("the", f"the {names[at % 6]}"), 80)


def test_headers_and_footers_go_and_are_counted() -> None:
    pages = [
        ["Annual Report 2026", f"Part {at // 5}: Figures", *body(at), f"- {at + 4} -"]
        for at in range(1, 30)
    ]
    document = pdf(pages)
    assert document.removed_lines == 28 + 29 + 29
    assert dict(document.removed) == {
        "Annual Report 2026": 28,
        "Part 0: Figures": 29,
        "- 5 -": 29,
    }
    assert clean(loaded_pdf(pages), remove_running=False).text.count("Annual Report 2026") == 29
    assert document.text.count("Annual Report 2026") == 1  # the first may be the title
    for at in range(1, 30):
        assert f"Item {at * 7} was decided by" in document.text


def test_footer_that_comes_first_and_tall_headers_go() -> None:
    head = ["Ministry of Works", "Office of Plans", "Section for Roads", "Group for Bridges"]
    pages = [[f"{at} / 12", *head, "Printed 2026-01-02", *body(at)] for at in range(1, 13)]
    document = pdf(pages)
    assert document.text.count("Group for Bridges") == 1
    assert document.text.count("Printed") == 1 and " / 12" not in document.text


def test_tables_of_numbers_at_page_ends_stay() -> None:
    pages = [[*body(at), "total", str(at * at * 31 + 5)] for at in range(1, 9)]
    document = pdf(pages)
    assert all(f"\n{at * at * 31 + 5}" in document.text for at in range(1, 9))


def test_figures_of_forms_stay() -> None:
    """The same form on every page: its numbers are the very thing."""
    pages = [[*body(at), f"Total due: {at * 1371 % 977} EUR"] for at in range(1, 15)]
    document = pdf(pages)
    assert all(f"Total due: {at * 1371 % 977} EUR" in document.text for at in range(1, 15))


@pytest.mark.parametrize(
    "line",
    [
        "Valve number {at} is opened with a key of {wide} millimetres.",
        "밸브 {at}번은 {wide}밀리미터 열쇠로만 연다.",
    ],
)
def test_sentences_that_count_with_the_pages_stay(line: str) -> None:
    """Other numbers make a whole sentence another statement, not another page."""
    lines = [line.format(at=at, wide=at + 10) for at in range(1, 30)]
    document = pdf(
        [["Annual Report", lines[at - 1], *body(at), f"- {at} -"] for at in range(1, 30)]
    )
    assert all(one in document.text for one in lines)
    assert document.removed_lines == 28 + 29


def test_two_pages_lose_nothing() -> None:
    assert pdf([["Title", *body(1)], ["Title", *body(2)]]).removed_lines == 0


def test_korean_headers_go() -> None:
    pages = [
        ["근로기준법", *by_words(f"제{at}항. {KOREAN}", 40), f"- {at} -"] for at in range(1, 10)
    ]
    document = pdf(pages)
    assert document.text.count("근로기준법") == 1 and "- 3 -" not in document.text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_english_lines_are_joined(width: int) -> None:
    lines = [*by_words(ENGLISH, width), "2. Next heading", *by_words(ENGLISH, width)]
    assert pdf([lines]).text == f"{ENGLISH}\n2. Next heading\n{ENGLISH}"


@pytest.mark.parametrize("end", ["", " "])
@pytest.mark.parametrize("width", [25, 40, 47])
def test_korean_lines_broken_between_words(width: int, end: str) -> None:
    assert pdf([[line + end for line in by_words(KOREAN, width)]]).text == KOREAN


@pytest.mark.parametrize("width", [20, 25])
def test_korean_lines_broken_anywhere(width: int) -> None:
    """Where the ends of words show as spaces, all breaks are right."""
    lines = anywhere(KOREAN, width)
    spaced = [line + " " * following.startswith(" ") for line, following in pairwise([*lines, ""])]
    assert pdf([[line.lstrip() for line in spaced]]).text == KOREAN


@pytest.mark.parametrize("width", [20, 25, 40])
def test_korean_habit_shows_in_the_widths(width: int) -> None:
    """Without spaces at line ends: full lines come from breaking anywhere, ragged ones do not."""
    text = " ".join(KOREAN.replace("휴가", word) for word in ("휴가", "휴직", "교육", "병가"))
    full = [line.strip() for line in anywhere(text, width)]
    assert habits([full]).korean_glue == ""
    assert habits([by_words(text, width)]).korean_glue == " "


def test_marked_hyphens() -> None:
    lines = [
        "The state-of-the-art method was described in the inter\u00ad",
        "national journal together with the well-known state-of-the\u00ad",
        "art baseline, as is usual for papers of this sort in the field of",
        "information retrieval, and it co\u00adoperates.",
    ]
    assert "in the international journal" in pdf([lines]).text
    assert "state-of-the-art baseline" in pdf([lines]).text
    assert "cooperates." in pdf([lines]).text


def test_headings_lists_and_tables_stay_lines() -> None:
    table = ["Item Count Price", "Apple 12 3.50", "Pear 7 4.20"]
    listed = ["• first point of the list", "• second point of the list"]
    lines = ["1. Introduction", *by_words(ENGLISH, 80), *table, *listed, "① 하나", "② 둘"]
    assert pdf([lines]).text.split("\n") == [
        "1. Introduction", ENGLISH, *table, *listed, "① 하나", "② 둘",
    ]  # fmt: skip


def test_sentences_go_on_over_pages() -> None:
    lines = by_words(ENGLISH, 80)
    document = pdf([[*lines[:2]], [], lines[2:]], labels=True)
    assert document.text == ENGLISH
    assert document.pages[1].start == document.pages[1].end
    assert document.text[document.pages[2].start :] == " ".join(lines[2:])
    assert [span.label for span in document.pages] == ["217", "218", "219"]


def test_pages_without_text() -> None:
    assert pdf([[], [], []]).text == ""
    document = pdf([["only fact"], []])
    assert document.text.strip() == "only fact" and document.pages[0].start == 0


@pytest.mark.parametrize("media", ["txt", "md", "html", "docx", "csv"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "  one\n\n\n two\t \n",
        f"{ENGLISH}\n\n{KOREAN}\n",
        "Two roads diverged in a yellow wood,\nAnd sorry I could not travel both\n" * 20,
        "".join(f"2026-01-02 10:00:{at:02d} INFO request {at} took 12 ms\n" for at in range(60)),
        "".join(
            f"Sentence number {at} stands on a line of its own here, it does.\n" for at in range(60)
        ),
        "".join(
            f"def function_{at}(value): return value + {at} * offset_of_it\n" for at in range(40)
        ),
        "".join(
            f"- point {at} of a list whose lines have quite the same length\n" for at in range(40)
        ),
        "".join(
            f"word{at:04d}  column two is here  column three is here  {at}\n" for at in range(40)
        ),
    ],
)
def test_texts_that_need_nothing_stay(media: str, text: str) -> None:
    assert plain(text, media).text == text


def test_hard_wrapped_text_keeps_every_offset() -> None:
    paragraphs = ["\n".join(by_words(ENGLISH * 2, 72)) for _ in range(6)]
    text = "TITLE\n\n" + "\n\n".join(paragraphs) + "\n"
    document = plain(text)
    assert len(document.text) == len(text)
    assert document.text.count("\n") == 2 * 6 + 1
    assert all(a == b or (a, b) == ("\n", " ") for a, b in zip(text, document.text, strict=True))
    assert plain(text, "md").text == text


def test_two_hundred_pages_are_quick() -> None:
    loaded = LoadedFile(
        "a.pdf",
        "pdf",
        tuple(
            Page(at, "\n".join(["Annual Report", *(body(at) * 8), f"- {at} -"]))
            for at in range(1, 201)
        ),
    )
    started = time.process_time()
    clean(loaded)
    assert time.process_time() - started < 0.5  # 0.1 s on an idle machine
