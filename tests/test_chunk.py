"""Chunks: limits whatever the text, offsets, headings, tables, pages, speed."""

from __future__ import annotations

import base64
import random
import re
import time

import pytest

from retrieval.chunk import chunk
from retrieval.types import Chunk, CleanDocument, PageSpan, passage_body

WORD = re.compile(r"[A-Za-z]{1,6}|[가-힣]|\d{1,3}|\n|[^\sA-Za-z가-힣\d]")


def count_tokens(text: str) -> int:
    """Short pieces of words, single syllables; four for an emoji, as byte vocabularies have."""
    return sum(4 if ord(piece[0]) > 0xFFFF else 1 for piece in WORD.findall(text))


def made(
    text: str, media: str = "md", *, minimum: int = 300, maximum: int = 500, **rest: object
) -> list[Chunk]:
    document = CleanDocument("d", media, text, rest.get("pages", ()))  # type: ignore[arg-type]
    chunks = chunk(document, count_tokens=count_tokens, min_tokens=minimum, max_tokens=maximum)
    check(text, chunks, maximum)
    return chunks


def check(text: str, chunks: list[Chunk], maximum: int) -> None:
    """What must hold for every text."""
    position = 0
    for item in chunks:
        assert item.text == text[item.start : item.end]
        assert item.text == item.text.strip() != ""
        assert item.tokens == count_tokens(passage_body(item.context, item.text)) <= maximum
        assert text[position : item.start].strip() == ""
        position = item.end
    assert text[position:].strip() == ""


def sentences(n: int, word: str = "river") -> str:
    return " ".join(f"The {word} number {i} flows to the sea near a town." for i in range(n))


HOSTILE = {
    "hangul": "가나다라마바사아자차카타파하" * 7143,
    "base64": base64.b64encode(random.Random(1).randbytes(7500)).decode(),
    "line": "x" * 50_000,
    "emoji": "👨‍👩‍👧‍👦" * 3000,
    "spaces": " " * 50_000 + "a" + "\n" * 50_000 + "b" * 3000,
    "cell": "a,b\n1," + "y z" * 70_000 + "\n2,3\n",
    "dots": ". " * 25_000,
    "quotes": '"' * 50_000,
    "accents": "e\u0301" * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("maximum", [500, 8])
def test_hostile_texts_end_soon_and_stay_within_the_limit(name: str, maximum: int) -> None:
    """BC-60: no endless splitting, nothing above the limit, no character lost."""
    begin = time.process_time()
    media = "csv" if name == "cell" else "md"
    assert made(HOSTILE[name], media, minimum=min(300, maximum), maximum=maximum)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("text", ["", " \n\t ", "\n" * 1000])
def test_nothing_gives_no_chunks(text: str) -> None:
    assert made(text) == []


@pytest.mark.parametrize("limits", [(0, 5), (6, 5), (-1, 8)])
def test_impossible_limits_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="chunk limits"):
        made("text", minimum=limits[0], maximum=limits[1])


def test_a_short_document_is_one_chunk() -> None:
    text = "# Title\n\nOne.\n\n## Part\n\nTwo.\n"
    (only,) = made(text)
    assert only.text == text.strip()
    assert only.context == ""


def test_prose_ends_at_sentences_and_fills_the_range() -> None:
    chunks = made(sentences(300))
    assert all(item.text.endswith("town.") for item in chunks)
    assert all(item.tokens >= 300 for item in chunks[:-1])


def test_sentences_stay_whole_when_together_they_cost_more_than_apart() -> None:
    document = CleanDocument("d", "txt", sentences(200), ())
    chunks = chunk(
        document,
        count_tokens=lambda text: int(len(text) ** 1.1 / 4),
        min_tokens=300,
        max_tokens=500,
    )
    assert all(item.text.endswith("town.") for item in chunks)
    assert all(item.tokens <= 500 for item in chunks)


def test_korean_ends_at_sentences() -> None:
    chunks = made("직원은 해마다 휴가를 열다섯 날 쓸 수 있습니다. " * 120)
    assert len(chunks) > 2
    assert all(item.text.endswith("습니다.") for item in chunks)


def test_chunks_begin_at_headings_and_carry_their_path() -> None:
    text = "".join(
        f"# Land {i}\n\n{sentences(12)}\n\n## Coast {i}\n\n{sentences(40)}\n\n" for i in range(4)
    )
    chunks = made(text)
    assert sum(item.text.startswith("#") for item in chunks) >= 4
    inner = next(item for item in chunks if not item.text.startswith("#"))
    assert inner.context.startswith("Land")
    assert " > Coast" in inner.context


def test_a_hash_is_no_heading_in_plain_text_or_code() -> None:
    code = "```\n# not a heading\n```\n\n" + sentences(80)
    assert all("not a heading" not in item.context for item in made(code))
    assert all(item.context == "" for item in made("# comment\n\n" + sentences(80), "txt"))


def rows(n: int) -> list[str]:
    return [f"city {i},{i * 7},north {i}" for i in range(n)]


def test_csv_rows_stay_whole_under_their_header() -> None:
    text = "name,people,region\n" + "\n".join(rows(500)) + "\n"
    chunks = made(text, "csv")
    holder = next(item for item in chunks if "city 487," in item.text)
    assert holder.context == "name,people,region"
    assert "city 487,3409,north 487" in holder.text.splitlines()
    lines = [line for item in chunks for line in item.text.splitlines()]
    assert lines == text.splitlines()


def test_a_quoted_cell_with_line_ends_is_one_row() -> None:
    cell = '"first\nsecond\nthird"'
    text = "id,note\n" + "\n".join(f"{i},{cell}" for i in range(300))
    assert all(item.text.count('"') % 2 == 0 for item in made(text, "csv"))


def test_a_stray_quote_does_not_swallow_the_table() -> None:
    text = "size,price\n" + '5" pipe,3\n' + "\n".join(rows(400))
    assert len(made(text, "csv")) > 3


def test_markdown_table_rows_carry_header_and_heading() -> None:
    table = "\n".join(["| city | people |", "|---|---|", *(f"| c{i} | {i} |" for i in range(300))])
    chunks = made(f"# Census\n\nIntro.\n\n{table}\n\nAfter.\n")
    holder = next(item for item in chunks if "| c250 |" in item.text)
    assert holder.context == "Census\n| city | people |"
    assert all(line.startswith("|") for line in holder.text.splitlines() if "c2" in line)


def test_a_context_that_is_too_long_is_left_out() -> None:
    text = f"{'long header ' * 100},x\n" + "\n".join(rows(200))
    assert all(item.tokens <= 60 for item in made(text, "csv", minimum=20, maximum=60))


def test_a_small_rest_is_joined_when_it_fits() -> None:
    chunks = made(sentences(41) + "\n\n# End\n\nBye.")
    assert all(item.tokens >= 30 for item in chunks)


def test_pages_are_those_of_the_text() -> None:
    pages, text = [], ""
    for number in range(1, 13):
        start = len(text)
        text += "" if number in (3, 4) else f"PAGE{number:02d} {sentences(18)}\n"
        pages.append(PageSpan(number, start, len(text)))
    chunks = made(text, "pdf", pages=tuple(pages))
    for number in (1, 2, *range(5, 13)):
        place = text.index(f"PAGE{number:02d}")
        holder = next(item for item in chunks if item.start <= place < item.end)
        assert holder.page is not None and holder.page_end is not None
        assert holder.page <= number <= holder.page_end
    for item in chunks:
        first = next(p for p in pages if p.start <= item.start < p.end)
        last = next(p for p in pages if p.start < item.end <= p.end)
        assert (item.page, item.page_end) == (first.number, last.number)
    assert made("no pages", "txt")[0].page is None


def test_random_texts_hold_all_promises() -> None:
    rng = random.Random(7)
    parts = [
        "a",
        "가",
        ". ",
        "\n",
        "\n\n",
        "# h\n",
        "| x | y |\n",
        "|---|---|\n",
        "😀",
        "```\n",
        '"',
    ]
    parts += ["word ", "다. ", ",", "\u200d", "e\u0301", "- item\n", " " * 30, "longword" * 9]
    for _ in range(400):
        text = "".join(rng.choice(parts) for _ in range(rng.randrange(200)))
        maximum = rng.choice([8, 13, 40, 100])
        made(
            text, rng.choice(["md", "txt", "csv"]), minimum=rng.randint(1, maximum), maximum=maximum
        )
