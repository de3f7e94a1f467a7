"""What the pages of a document are called: a workbook has sheets, a presentation slides."""

from __future__ import annotations

from chatbot.ui.i18n import Language, tr

_KINDS = {
    "sheet": (".xlsx", ".xlsm", ".xls", ".ods"),
    "slide": (".pptx", ".odp"),
}


def pages_text(language: Language, document: str, page: int, page_end: int | None) -> str:
    """Where a passage of `document` stands: `page 3`, `sheets 1 to 2`."""
    kind = _kind(document)
    if page_end in (None, page):
        return tr(language, f"source.{kind}", page=page)
    return tr(language, f"source.{kind}s", page=page, end=page_end)


def page_count_text(language: Language, document: str, count: int) -> str:
    """How many pages, sheets or slides a document has."""
    return tr(language, f"document.{_kind(document)}s", count=count)


def _kind(document: str) -> str:
    name = document.lower()
    return next((kind for kind, ends in _KINDS.items() if name.endswith(ends)), "page")
