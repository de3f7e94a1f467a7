"""Pages of a kept PDF as pictures, with the quoted text marked."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from retrieval.loaders.page_picture import MARK, MAX_SIDE
from retrieval.pipeline import DEFAULT_LIMITS, Library
from tests.file_maker import pdf

LINES = ["The harbour wall is old.", "The lantern was paid for", "by the guild of 1904.", "End."]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    made = Library(tmp_path / "library", embedder=None, count_tokens=lambda t: len(t.split()))
    (tmp_path / "a.pdf").write_bytes(pdf([["First page."], LINES]))
    (tmp_path / "b.txt").write_text("no pages", encoding="utf-8")
    for name in ("a.pdf", "b.txt"):
        assert made.ingest(tmp_path / name).status == "indexed"
    yield made
    made.close()


def ids(library: Library) -> dict[str, str]:
    return {info.name: info.id for info in library.documents()}


def marked_rows(png: bytes | None) -> list[int]:
    """The rows of pixels in which something is marked."""
    assert png is not None
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    assert max(picture.size) <= MAX_SIDE
    marked = (np.asarray(picture) == MARK).all(axis=2).any(axis=1)
    return [int(row) for row in np.flatnonzero(marked)]


def test_the_quoted_lines_are_marked_also_where_lines_were_joined(library: Library) -> None:
    document = ids(library)["a.pdf"]
    nothing = marked_rows(library.page_picture(document, 2))
    one = marked_rows(library.page_picture(document, 2, "The harbour wall is old."))
    quote = "lantern was paid for by the guild of 1904"
    two = marked_rows(library.page_picture(document, 2, quote))
    assert nothing == []
    assert one and two and min(one) < min(two) and max(one) < max(two)
    assert max(two) - min(two) > max(one) - min(one)


def test_of_a_quote_over_two_pages_each_page_marks_its_part(library: Library) -> None:
    document = ids(library)["a.pdf"]
    quote = "First page. The harbour wall is old."
    assert marked_rows(library.page_picture(document, 1, quote))
    assert marked_rows(library.page_picture(document, 2, quote))
    assert not marked_rows(library.page_picture(document, 2, "of this nothing is there"))


def test_there_is_no_picture_of_what_has_none(library: Library) -> None:
    known = ids(library)
    assert library.page_picture(known["a.pdf"], 3) is None
    assert library.page_picture(known["a.pdf"], 0) is None
    assert library.page_picture(known["b.txt"], 1) is None
    assert library.page_picture("../a", 1) is None


def test_a_file_that_takes_too_long_or_is_damaged_gives_none(tmp_path: Path) -> None:
    limits = replace(DEFAULT_LIMITS, timeout_s=0.0)
    library = Library(
        tmp_path / "l", embedder=None, count_tokens=lambda t: len(t.split()), limits=limits
    )
    (tmp_path / "l" / "files" / "x.pdf").write_bytes(pdf([["slow"]]))
    assert library.page_picture("x", 1) is None
    library.close()
    library = Library(tmp_path / "m", embedder=None, count_tokens=lambda t: len(t.split()))
    (tmp_path / "m" / "files" / "x.pdf").write_bytes(pdf([["slow"]])[:200])
    assert library.page_picture("x", 1) is None
    library.close()
