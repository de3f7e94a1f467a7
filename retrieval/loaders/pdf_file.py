"""Reads the text layer of PDF files, page by page. Knows no layout beyond PDFium's own.

PDFium is not thread-safe; this module only ever runs in the parser's own process.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c

from retrieval.loaders.parsed import Parsed
from retrieval.loaders.picture import NOTE
from retrieval.loaders.recognition import DOTS_PER_INCH, INSTALL, languages, recognise
from retrieval.types import LoadError, Page

_HEAD_BYTES = 1024
_LOCKED = (
    "This PDF is password-protected; save a copy without a password in a PDF program and "
    "upload that."
)
_IMAGES = (
    f"No text on {{}}: what is there looks like images; to have them read (OCR), {INSTALL} and "
    "upload the file again."
)
_NOTHING = "No text was recognised on {}, which are pictures."
_LATE = (
    "No time was left to recognise the text of {}, which are pictures; raise parser_timeout_s and "
    "upload the file again."
)
_MAX_SIDE = 10_000  # pixels: a poster of three metres is read coarsely, not given up
_BLANK = "No text on {}: nothing is there."
_UNREADABLE = "The text on {} cannot be read: its fonts do not say which letters they show."


def read(path: Path, max_pages: int) -> Parsed:
    """One Page a sheet, numbered from 1, with its printed label where that differs.

    U+00AD marks a hyphen that PDFium takes for one made by wrapping the line.
    Raises LoadError for files that are locked, damaged, no PDF, or too long.
    """
    with path.open("rb") as file:
        if b"%PDF-" not in file.read(_HEAD_BYTES):
            raise LoadError("This file is not a PDF, whatever its name says.")
    document = opened(path)
    try:
        n_pages = len(document)
        if n_pages > max_pages:
            raise LoadError(
                f"This PDF has {n_pages} pages, {max_pages} are allowed; split it or raise the "
                "limit."
            )
        sheets = [_sheet(document, at) for at in range(n_pages)]
        return Parsed(tuple(page for page, _ in sheets), _warnings(document, sheets))
    finally:
        document.close()


def opened(path: Path) -> Any:
    """PDFium tries the empty user password by itself."""
    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD:
            raise LoadError(_LOCKED) from error
        if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_SECURITY:
            raise LoadError("This PDF is encrypted in a way that cannot be opened here.") from error
        raise LoadError("This PDF is damaged or cut off and cannot be opened.") from error


def _sheet(document: Any, at: int) -> tuple[Page, str]:
    """A page and what is the matter with it: "", "damaged", "images", "blank", "unreadable", or
    what recognition made of images: "recognised", "nothing", "late"."""
    label = document.get_page_label(at) or None
    label = None if label == str(at + 1) else label
    try:
        text, n_objects = _content(document, at)
    except pypdfium2.PdfiumError:
        return Page(at + 1, "", label), "damaged"
    if text.strip() and not _is_unreadable(text):
        return Page(at + 1, text, label), ""
    state = "unreadable" if text.strip() else "images" if n_objects else "blank"
    if state == "blank" or not languages():
        return Page(at + 1, text if state == "unreadable" else "", label), state
    recognised = _recognised(document, at)
    if recognised:
        return Page(at + 1, recognised, label), "recognised"
    return Page(at + 1, "", label), "nothing" if recognised == "" else "late"


def _recognised(document: Any, at: int) -> str | None:
    """The text of a page as a picture; None when time was short."""
    page = document.get_page(at)
    try:
        side = max(page.get_width(), page.get_height(), 1.0)
        bitmap = page.render(scale=min(DOTS_PER_INCH / 72, _MAX_SIDE / side), grayscale=True)
        try:
            return recognise(bitmap.to_pil())
        finally:
            bitmap.close()
    finally:
        page.close()


def _content(document: Any, at: int) -> tuple[str, int]:
    """Text, with what people filled in or noted, and the number of objects on the page."""
    page = document.get_page(at)
    try:
        n_objects = pdfium_c.FPDFPage_CountObjects(page)
        # Form fields and notes become text. Not page.flatten(), which wants a form in the file.
        if pdfium_c.FPDFPage_Flatten(page, pdfium_c.FLAT_NORMALDISPLAY) == pdfium_c.FLATTEN_SUCCESS:
            page.close()
            page = document.get_page(at)
        text_page = page.get_textpage()
        try:
            text: str = text_page.get_text_range()
        finally:
            text_page.close()
    finally:
        page.close()
    return text.replace("\x02", "\u00ad").replace("\ufffe", "\u00ad"), n_objects


def _is_unreadable(text: str) -> bool:
    letters = [letter for letter in text if not letter.isspace()]
    n_odd = sum(
        letter == "\ufffd" or unicodedata.category(letter) in {"Co", "Cn", "Cc"}
        for letter in letters
    )
    return n_odd * 3 > len(letters)


def _warnings(document: Any, sheets: Sequence[tuple[Page, str]]) -> tuple[str, ...]:
    found = []
    for kind, sentence in (
        ("images", _IMAGES),
        ("unreadable", _UNREADABLE),
        ("damaged", "Damaged and left out: {}."),
        ("recognised", NOTE),
        ("nothing", _NOTHING),
        ("late", _LATE),
    ):
        if numbers := [page.number or 0 for page, state in sheets if state == kind]:
            found.append(sentence.format(page_ranges(numbers)))
    blank = [page.number or 0 for page, state in sheets if state == "blank"]
    if blank and not any(page.text for page, _ in sheets):  # else they are only pauses
        found.append(_BLANK.format(page_ranges(blank)))
    if n_attached := document.count_attachments():
        found.append(f"Files attached to this PDF were not read: {n_attached}.")
    return tuple(found)


def page_ranges(numbers: Sequence[int]) -> str:
    """[1, 2, 3, 7] as "pages 1-3, 7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"{'page' if len(numbers) == 1 else 'pages'} {shown}"
