"""Reads CSV and TSV into one Markdown table. Knows no types: every cell is text."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from pathlib import Path

from retrieval.loaders.characters import sanitize
from retrieval.loaders.encoding import decode
from retrieval.loaders.parsed import Parsed, whole
from retrieval.loaders.tables import has_corner, markdown_table
from retrieval.types import LoadError

_DELIMITERS = "\t;|,"
_SAMPLE_CHARACTERS = 1 << 16
_LONG_CELL_CHARACTERS = 20_000
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # the file's own size is limited before


def read(path: Path, max_pages: int) -> Parsed:
    """Title lines, then the table with its header. Raises LoadError when it is not text."""
    found = decode(path.read_bytes())
    rows = _rows(sanitize(found.text))
    titles = _titles(rows)
    lines = [" ".join(cell for cell in row if cell) for row in rows[:titles]]
    table = _table(rows[titles:])
    text = "\n\n".join([*lines, *([table] if table else [])])
    return whole(text, (found.warning,) if found.warning else ())


def _rows(text: str) -> list[list[str]]:
    """Records without the empty ones. A stray quote must not swallow the rest of the file."""
    delimiter = sniff_delimiter(text)
    try:
        rows = _parse(text, delimiter)
        swallowed = any(_is_swallowed(cell) for row in rows for cell in row)
    except csv.Error:
        swallowed = True
    if swallowed:
        try:
            rows = _parse(text, delimiter, quotes=False)
        except csv.Error as error:
            raise LoadError(f"The rows of this file cannot be told apart ({error}).") from error
    # Of a file that holds delimiters only, they are no text.
    return [row for row in rows if any(cell.strip(_DELIMITERS) for cell in row)]


def _parse(text: str, delimiter: str, *, quotes: bool = True) -> list[list[str]]:
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
        skipinitialspace=delimiter != "\t",
    )
    return [[cell.strip() for cell in row] for row in reader]


def _is_swallowed(cell: str) -> bool:
    return len(cell) > _LONG_CELL_CHARACTERS and cell.count("\n") > 100


def sniff_delimiter(text: str) -> str:
    """The delimiter that gives the most rows of one width, the header among them.

    csv.Sniffer is not used: it takes letters for delimiters in one-column files.
    """
    sample = text[:_SAMPLE_CHARACTERS]
    if len(text) > len(sample) and "\n" in sample:
        sample = sample[: sample.rindex("\n")]
    return max(_DELIMITERS, key=lambda delimiter: _evenness(sample, delimiter))


def _evenness(sample: str, delimiter: str) -> float:
    try:
        rows = [row for row in _parse(sample, delimiter) if any(row)]
    except csv.Error:
        return 0.0
    widths = Counter(len(row) for row in rows if len(row) > 1)
    if not widths:
        return 0.0
    width, n_even = max(widths.items(), key=lambda item: (item[1], item[0]))
    header_fits = len(rows[0]) == width
    # A wider table is the likelier one where two delimiters fit equally well.
    return n_even / len(rows) + header_fits * 0.5 + min(width, 50) / 1000


def _titles(rows: list[list[str]]) -> int:
    """How many lines before the header are titles: one filled cell where others have more."""
    width = max((sum(map(bool, row)) for row in rows), default=0)
    if width < 2:
        return 0
    for at, row in enumerate(rows[:10]):
        if sum(map(bool, row)) > 1 or has_corner(rows[at:], _is_number):
            return at
    return 0


def _table(rows: list[list[str]]) -> str:
    if not rows:
        return ""
    if all(_is_number(cell) for cell in rows[0]) and not has_corner(rows, _is_number):
        return markdown_table([], rows)  # no header: the columns are numbered
    return markdown_table(rows[0], rows[1:])


def _is_number(text: str) -> bool:
    return not text or text.replace(",", "").replace(".", "").lstrip("+-").rstrip("%").isdigit()
