"""Loaded pages to one clean text with page spans. Pure; knows no file and no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate

from retrieval.cleaning.plain import unwrapped
from retrieval.cleaning.running import kinds, running_lines
from retrieval.cleaning.wrapped import Habits, continues, glued, habits, rejoin
from retrieval.types import CleanDocument, LoadedFile, Page, PageSpan

_PAGE_BREAK = "\n\n"
_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u3000\t]")
Removed = tuple[tuple[str, int], ...]
# Gluing two texts: the text before a page, the page's text -> both as one.
Glue = Callable[[str, str], str]


def clean(loaded: LoadedFile, *, remove_running: bool = True) -> CleanDocument:
    """The text that everything after this stage, and every offset, refers to.

    PDF pages lose running headers and footers, unless `remove_running` is off, and get their
    wrapped lines joined. Plain text
    that is clearly hard-wrapped gets spaces for its line ends, one for one. All other formats
    stay as they were loaded, character for character.
    """
    if loaded.media == "pdf":
        texts, removed, habit = _pdf_pages(loaded.pages, remove_running=remove_running)
        return _document(loaded, texts, removed, lambda a, b: glued(a, b, habit))
    texts = [page.text for page in loaded.pages]
    if loaded.media == "txt":
        texts = [unwrapped(text) for text in texts]
    return _document(loaded, texts, (), None)


def _pdf_pages(pages: Sequence[Page], *, remove_running: bool) -> tuple[list[str], Removed, Habits]:
    lines = [_BLANKS.sub(" ", page.text).split("\n") for page in pages]
    running = running_lines(lines) if remove_running else set()
    kept = [
        [line for at, line in enumerate(page) if (number, at) not in running]
        for number, page in enumerate(lines)
    ]
    habit = habits(kept)
    removed = kinds([lines[number][at] for number, at in sorted(running)])
    return [rejoin(page, habit) for page in kept], removed, habit


def _document(
    loaded: LoadedFile, texts: Sequence[str], removed: Removed, glue: Glue | None
) -> CleanDocument:
    """Joins the pages. The spans lie end to end; a break belongs to the page before it."""
    pieces: list[str] = []
    last = -1  # the last page with text, which may still grow by a break or a space
    for at, page in enumerate(texts):
        if page and last >= 0:
            pieces[last], page = _joined(pieces[last], page, glue)
        pieces.append(page)
        last = at if page else last
    ends = list(accumulate(map(len, pieces)))
    # Empty pages lie behind the break that follows the last text before them.
    spans = tuple(
        PageSpan(page.number, end - len(piece), end, page.label)
        for page, piece, end in zip(loaded.pages, pieces, ends, strict=True)
    )
    text = "".join(pieces)
    n_removed = sum(count for _, count in removed)
    return CleanDocument(
        loaded.name, loaded.media, text, spans, n_removed, loaded.warnings, removed
    )


def _joined(before: str, page: str, glue: Glue | None) -> tuple[str, str]:
    """Both texts as they stand in the document, a sentence that goes on without a break."""
    if glue is None or not continues(before, page):
        return before + _PAGE_BREAK, page
    whole, n_page = glue(before, page), len(page.lstrip())
    return whole[: len(whole) - n_page], whole[len(whole) - n_page :]
