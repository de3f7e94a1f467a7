"""What narrowed passages are made of, and the headings and table headers that hold over them."""

from __future__ import annotations

from retrieval.sentences import byte_cells, line_cells, sentence_cells, whole_rows
from retrieval.structure import context_at
from retrieval.types import CleanDocument, Passage

KOREAN = "".join(f"등대{i}등대지기는석유를보관한다" for i in range(20))


def test_cells_cover_their_text() -> None:
    text = "e\u0301" * 40 + " 👩\u200d🚒" * 20 + KOREAN[:200]
    for n_bytes in (1, 7, 40):
        cells = byte_cells(text, 3, len(text), n_bytes)
        assert "".join(text[a:b] for a, b in cells) == text[3:]
        assert n_bytes == 1 or all(len(text[a:b].encode()) <= n_bytes for a, b in cells)
    assert not any(text[a] == "\u0301" for a, _ in byte_cells(text, 0, 80, 40))
    table = "Intro.\n\n| a | b |\n|---|---|\n| Yes. No! | 1 |\n| Yes. No! | 2 |\n"
    lines = [table[a:b] for a, b in line_cells(table, 0, len(table))]
    assert lines[1] == "| a | b |\n|---|---|\n" and "".join(lines) == table
    cells = sentence_cells(table)
    groups = whole_rows(table, cells)
    assert [n for group in groups for n in group] == list(range(len(cells)))
    assert table[cells[groups[-1].start][0] :].strip() == "| Yes. No! | 2 |"


def chunk_of(text: str, start: int, context: str = "") -> Passage:
    return Passage(1, "d", "d.md", text[start:], start, len(text), 9, 0.5, context=context)


def context(text: str, place: str, *, start: int = 0, above: str = "", media: str = "md") -> str:
    document = CleanDocument("d", media, text, ())
    return context_at(chunk_of(text, start, above), text.index(place), document)


def test_a_comment_in_code_is_no_heading() -> None:
    text = "# Guide\n\n```bash\n# install lamp\napt lamp\n```\nKeeper.\n\n~~~\n# more\nlast\n"
    assert context(text, "Keeper") == "Guide"
    assert context(text, "last", start=text.index("apt"), above="Guide") == "Guide"
    assert context(text, "last", media="code") == ""


def test_a_heading_keeps_those_above_it() -> None:
    text = "## Travel\n\nShort.\n\n### Hotels\n\nOld.\n\n## Food\n\nRice.\n\n#### Tea\n\nGreen.\n"
    assert context(text, "Old") == "Travel > Hotels"
    assert context(text, "Green") == "Food > Tea"
    inside = text.index("Old")
    assert context(text, "Rice", start=inside, above="Travel > Hotels") == "Food"
    assert context(text, "Green", start=text.index("Rice"), above="Food") == "Food > Tea"


def test_a_table_header_holds_over_its_own_rows_only() -> None:
    text = (
        "| N | A |\n|---|---|\n| x | 1 |\n| y | 2 |\n\nProse here.\n\n| M |\n|---|\n| z |\n| w |\n"
    )
    assert context(text, "| y") == "| N | A |"
    assert context(text, "2 |") == "| N | A |"
    assert context(text, "Prose") == ""
    assert context(text, "| w") == "| M |"
    start, above = text.index("| x"), "Top\n| N | A |"
    assert context(text, "| y", start=start, above=above) == "Top\n| N | A |"
    assert context(text, "Prose", start=start, above=above) == "Top"
    assert context(text, "| M", start=start, above=above) == "Top"
