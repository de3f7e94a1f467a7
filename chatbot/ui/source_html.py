"""The page of a document around a citation, its words marked, as HTML. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from chatbot.ui.escape import escape_html as esc
from chatbot.ui.fragments import page_html
from chatbot.ui.i18n import Language, tr
from retrieval.types import Citation, PageSpan

AROUND_CHARACTERS = 2500
"""Shown on each side of the words where a document has no pages, or very long ones."""


def source_html(
    language: Language, citation: Citation, text: str | None, spans: Sequence[PageSpan] = ()
) -> str:
    """`text` is that of the whole document, None when it is no longer in the library."""
    page = page_html(language, citation)
    head = f'<p class="where"><span class="document">{esc(citation.document)}</span>{page}</p>'
    place = None if text is None else find_quote(citation, text)
    if text is None or place is None:
        key = "source.gone" if text is None else "source.changed"
        return (
            f'{head}<p class="warn">{esc(tr(language, key))}</p>'
            f"<blockquote>{esc(citation.quote)}</blockquote>"
        )
    start, end = place
    first, last = extent(start, end, len(text), spans)
    before, quote, after = text[first:start], text[start:end], text[end:last]
    more_before = '<p class="more">…</p>' if first > 0 else ""
    more_after = '<p class="more">…</p>' if last < len(text) else ""
    picture = _picture_html(language, citation)
    return (
        f'{head}{picture}{more_before}<div class="page-text" tabindex="0">{esc(before)}'
        f'<mark class="quoted">{esc(quote)}</mark>{esc(after)}</div>{more_after}'
    )


def _picture_html(language: Language, citation: Citation) -> str:
    """Where the script of the page puts the picture of the page, which takes a while to draw."""
    if not has_picture(citation):
        return ""
    label = tr(language, "source.picture", page=citation.page or 1, document=citation.document)
    return f'<div class="page-picture" data-label="{esc(label)}" hidden></div>'


def has_picture(citation: Citation) -> bool:
    """Whether there may be a picture of the page."""
    return citation.page is not None and citation.document.lower().endswith(".pdf")


def find_quote(citation: Citation, text: str) -> tuple[int, int] | None:
    """Where the words stand; elsewhere if the document was replaced, None if they are not in it."""
    if text[citation.start : citation.end] == citation.quote:
        return citation.start, citation.end
    at = text.find(citation.quote)
    return (at, at + len(citation.quote)) if at >= 0 and citation.quote else None


def extent(start: int, end: int, length: int, spans: Sequence[PageSpan]) -> tuple[int, int]:
    """The characters to show: the pages of the words, at most so much on each side."""
    touched = [span for span in spans if span.start < end and span.end > start]
    first = min((span.start for span in touched), default=0)
    last = max((span.end for span in touched), default=length)
    return (
        max(first, start - AROUND_CHARACTERS),
        min(max(last, end), end + AROUND_CHARACTERS, length),
    )
