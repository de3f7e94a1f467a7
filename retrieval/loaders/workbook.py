"""Reads workbooks: one Page a sheet, each a table with its header. Computes no formula.

Excel's own files are read with their number formats, so that 0.15 shown as 15 % reads as such;
older and open formats (xls, xlsb, ods) as plain values.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import python_calamine as calamine
from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from retrieval.loaders import delimited, html_page
from retrieval.loaders.archive import open_archive
from retrieval.loaders.parsed import Parsed
from retrieval.loaders.sheet_parts import THREADED, beside_cells
from retrieval.loaders.sheet_rows import sheet_text
from retrieval.types import LoadError, Page

_Sheet = tuple[str, list[list[str]], list[str]]
"""Name, rows of texts, and what else is on the sheet: comments and charts."""
MAX_CELLS = 5_000_000
_NOT_ONE = "This file is damaged or not a workbook."
_PLAIN = "The number formats of this workbook could not be read; its values came without them."
# What openpyxl raises for workbooks that Excel opens, with odd styles, names or charts.
_ODD = (
    *(InvalidFileException, zipfile.BadZipFile),
    *(KeyError, ValueError, TypeError, AttributeError, IndexError),
)
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head|meta|table|style)\b", re.I)
_ROWS = re.compile(rb"[^<\t;,\x00-\x08]+[\t;,]")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD_BYTES = 1000
_PIECE = re.compile(r'\\.|"[^"]*"|.')
_ASIDE = re.compile(r"\[[^\]]*\]")
_UNCOMPUTED = re.compile(rb"<c [^>]*><f[^>]*(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>")


def read(path: Path, max_pages: int) -> Parsed:
    """The sheets in their order, hidden ones too. Raises LoadError for what is no workbook."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    if not zipped:
        return _as_text(path, max_pages) or _parsed(_plain_sheets(path), max_pages, ())
    with open_archive(path, kind="a workbook") as archive:
        names = archive.namelist()
        is_excel = "xl/workbook.xml" in names
        warnings = _uncomputed(archive, names) if is_excel else ()
        beside = beside_cells(archive) if is_excel else {}
    if not is_excel:
        return _parsed(_plain_sheets(path), max_pages, warnings)
    try:
        return _parsed(_excel_sheets(path, beside), max_pages, warnings)
    except _ODD:
        return _parsed(_plain_sheets(path), max_pages, (*warnings, _PLAIN))


def _as_text(path: Path, max_pages: int) -> Parsed | None:
    """Web sites call the tables that they offer for download workbooks; Excel opens these too."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if _MARKUP.match(head):
        found, kind = html_page.read(path, max_pages), "a web page"
    elif head.startswith(_UTF_16) or (b"\0" not in head and _ROWS.match(head)):
        found, kind = delimited.read(path, max_pages), "rows of text"
    else:
        return None
    note = f"This file is {kind} and no workbook; it was read as such."
    return replace(found, warnings=(*found.warnings, note))


def _parsed(sheets: Iterable[_Sheet], max_pages: int, warnings: tuple[str, ...]) -> Parsed:
    pages = []
    for number, (name, rows, notes) in enumerate(sheets, start=1):
        if number > max_pages:
            raise LoadError(f"This workbook has more than {max_pages} sheets; split it.")
        body = "\n\n".join(filter(None, [sheet_text(rows), *notes]))
        pages.append(Page(number, f"# {name}\n\n{body}" if body else "", name))
    return Parsed(tuple(pages), warnings)


def _excel_sheets(path: Path, beside: dict[str, list[str]]) -> Iterator[_Sheet]:
    book = load_workbook(path, data_only=True)
    for sheet in book._sheets:
        extra = beside.get(sheet.title, [])
        if not hasattr(sheet, "iter_rows"):  # a sheet that is a chart
            yield sheet.title, [], extra
            continue
        cells = [cell for cell in sheet._cells.values() if cell.value is not None]
        threaded = any(text.startswith(THREADED) for text in extra)
        notes = _notes(sheet._cells.values(), threaded=threaded)
        yield sheet.title, _filled(sheet, cells), [*notes, *extra]


def _filled(sheet: Any, cells: Sequence[Any]) -> list[list[str]]:
    """The rows from the first to the last filled cell, with gaps of one where more are empty.

    A stray cell far out makes sheets of millions of cells, of which nearly all are empty.
    """
    at_row = _places({cell.row for cell in cells})
    at_column = _places({cell.column for cell in cells})
    n_rows, n_columns = (max(at.values(), default=-1) + 1 for at in (at_row, at_column))
    if n_rows * n_columns > MAX_CELLS:
        raise LoadError(f"The sheet {sheet.title!r} has more than {MAX_CELLS:,} cells; split it.")
    rows = [[""] * n_columns for _ in range(n_rows)]
    for cell in cells:
        rows[at_row[cell.row]][at_column[cell.column]] = _shown(cell.value, cell.number_format)
    for area in sheet.merged_cells.ranges:
        _spread(rows, area, at_row, at_column)
    return rows


def _places(numbers: set[int]) -> dict[int, int]:
    """Each filled row (or column) and where it goes: a gap of any width is one wide."""
    places: dict[int, int] = {}
    at, last = -1, None
    for number in sorted(numbers):
        at += 1 if last is None or number == last + 1 else 2
        places[number], last = at, number
    return places


def _spread(
    rows: list[list[str]], area: Any, at_row: dict[int, int], at_column: dict[int, int]
) -> None:
    """A cell that spans others is repeated in them, so that a row can stand alone; one that is
    as wide as the sheet is a title."""
    if area.min_row not in at_row or area.min_col not in at_column:
        return
    text = rows[at_row[area.min_row]][at_column[area.min_col]]
    columns = [at_column[n] for n in range(area.min_col, area.max_col + 1) if n in at_column]
    is_title = len(columns) > 1 and len(columns) >= len(rows[0])
    for number in range(area.min_row, area.max_row + 1):
        if number in at_row and not is_title:
            for column in columns:
                rows[at_row[number]][column] = text


def _notes(cells: Iterable[Any], *, threaded: bool) -> list[str]:
    """Notes on cells; with threaded comments, those that Excel leaves for its older versions go."""
    found = []
    for cell in cells:
        note = getattr(cell, "comment", None)
        if note is None or (threaded and note.text.startswith("[Threaded comment]")):
            continue
        author = f" ({note.author})" if note.author and not note.author.startswith("tc=") else ""
        found.append(f"Comment on {cell.coordinate}{author}: {' '.join(note.text.split())}")
    return found


def _plain_sheets(path: Path) -> Iterator[_Sheet]:
    try:
        book = calamine.load_workbook(str(path))
    except calamine.PasswordError as error:
        raise LoadError(
            "This workbook is password-protected; save a copy without a password."
        ) from error
    except calamine.CalamineError as error:
        raise LoadError(_NOT_ONE) from error
    for name in book.sheet_names:
        rows = book.get_sheet_by_name(name).to_python()
        yield name, [[_shown(value, "General") for value in row] for row in rows], []


def _shown(value: object, number_format: str) -> str:
    """A cell as people read it: whole numbers without a point, dates as 2026-03-14."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return _number(value, number_format)
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ", timespec="minutes" if not value.second else "seconds")
        return text.removesuffix(" 00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return " ".join(str(value).split())


def _number(value: float, number_format: str) -> str:
    if number_format.split(";")[0].rstrip().endswith("%"):
        return f"{value * 100:.10g}%"
    if places := _places_of(number_format):
        return _padded(value, places)
    return f"{value:.15g}" if abs(value) < 1e15 else str(value)


@lru_cache(maxsize=1000)
def _places_of(number_format: str) -> tuple[str, ...]:
    """Zeros and signs of a format that has two zeros or more and nothing else to say; else ()."""
    pieces = _PIECE.findall(_ASIDE.sub("", number_format.split(";")[0].strip()))
    known = all(piece in "0-()/ " or piece[0] in '\\"' for piece in pieces)
    return tuple(pieces) if known and pieces.count("0") > 1 else ()


def _padded(value: float, places: Sequence[str]) -> str:
    """Digits in the places of zeros: numbers that are codes, such as 001234 or 010-1234-5678."""
    n_places = places.count("0")
    text = f"{abs(value):.0f}".zfill(n_places)
    digits = iter([text[: len(text) - n_places + 1], *text[len(text) - n_places + 1 :]])
    shown = (next(digits) if piece == "0" else piece.strip('\\"') for piece in places)
    return "-" * (value < 0) + "".join(shown)


def _uncomputed(archive: zipfile.ZipFile, names: Iterable[str]) -> tuple[str, ...]:
    """Formulas whose results were never stored, as programs leave them that write such files."""
    sheets = (name for name in names if name.startswith("xl/worksheets/") and name.endswith(".xml"))
    count = sum(len(_UNCOMPUTED.findall(archive.read(name))) for name in sheets)
    if not count:
        return ()
    return (
        f"Formulas without a stored result were left out: {count}; open the workbook in its "
        "program and save it anew.",
    )
