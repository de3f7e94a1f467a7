"""Loaded pages to one clean text with page spans. Pure; knows no file and no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from retrieval.cleaning.plain import unwrapped
from retrieval.cleaning.running import running_lines
from retrieval.cleaning.wrapped import Habits, continues, glued, habits, rejoin
from retrieval.types import CleanDocument, LoadedFile, Page, PageSpan

_PAGE_BREAK = "\n\n"
_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u3000\t]")
# Gluing two texts: the text before a page, the page's text -> both as one.
Glue = Callable[[str, str], str]


def clean(loaded: LoadedFile) -> CleanDocument:
    """The text that everything after this stage, and every offset, refers to.

    PDF pages lose running headers and footers and get their wrapped lines joined. Plain text
    that is clearly hard-wrapped gets spaces for its line ends, one for one. All other formats
    stay as they were loaded, character for character.
    """
    if loaded.media == "pdf":
        texts, n_removed, habit = _pdf_pages(loaded.pages)
        return _document(loaded, texts, n_removed, lambda a, b: glued(a, b, habit))
    texts = [page.text for page in loaded.pages]
    if loaded.media == "txt":
        texts = [unwrapped(text) for text in texts]
    return _document(loaded, texts, 0, None)


def _pdf_pages(pages: Sequence[Page]) -> tuple[list[str], int, Habits]:
    lines = [_BLANKS.sub(" ", page.text).split("\n") for page in pages]
    running = running_lines(lines)
    kept = [
        [line for at, line in enumerate(page) if (number, at) not in running]
        for number, page in enumerate(lines)
    ]
    habit = habits(kept)
    return [rejoin(page, habit) for page in kept], len(running), habit


def _document(
    loaded: LoadedFile, texts: Sequence[str], n_removed: int, glue: Glue | None
) -> CleanDocument:
    """Joins the pages. The spans lie end to end; a break belongs to the page before it."""
    text, starts = "", []
    pieces: list[str] = []
    length = 0
    for page in texts:
        if pieces and page:
            tail = pieces[-1]
            if glue is not None and continues(tail, page):
                joined = glue(tail, page)
                n_page = len(page.lstrip())
                pieces[-1] = joined[: len(joined) - n_page]
                page = joined[len(joined) - n_page :]
            else:
                pieces[-1] = tail + _PAGE_BREAK
            length += len(pieces[-1]) - len(tail)
        starts.append(length)
        if page:
            pieces.append(page)
            length += len(page)
    text = "".join(pieces)
    ends = [*starts[1:], len(text)]
    spans = tuple(
        PageSpan(page.number, start, end, page.label)
        for page, start, end in zip(loaded.pages, starts, ends, strict=True)
    )
    return CleanDocument(loaded.name, loaded.media, text, spans, n_removed, loaded.warnings)
