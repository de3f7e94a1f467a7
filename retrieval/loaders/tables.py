"""Rows of cells to a Markdown table, one row a line. Knows no file format.

Every loader writes tables through this file, so that whoever splits texts meets one shape only:
a header line, a line of dashes, then one line for each row, all starting with `|`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

Rows = Sequence[Sequence[str]]


def markdown_table(header: Sequence[str], rows: Rows) -> str:
    """Short rows are filled up, surplus cells get a column of their own: nothing is lost."""
    width = max([len(header), *(len(row) for row in rows)])
    names = [name or f"Column {at}" for at, name in _filled(header, width)]
    lines = [_line(names), "|" + " --- |" * width]
    lines += [_line([text for _, text in _filled(row, width)]) for row in rows]
    return "\n".join(lines)


def has_corner(rows: Rows, is_figure: Callable[[str], bool]) -> bool:
    """Whether the first row is figures that are names, such as years: they stand behind an empty
    cell, where they meet the names of the rows."""
    first, rest = rows[0], rows[1:]
    width = max(len(row) for row in rows)
    if not rest or not first or first[0] or 2 * sum(map(bool, first)) < width:
        return False
    if not all(is_figure(cell) for cell in first if cell):
        return False
    named = sum(bool(row and row[0] and not is_figure(row[0])) for row in rest)
    return named * 10 >= len(rest) * 9  # a total or a note may go without


def _filled(row: Sequence[str], width: int) -> list[tuple[int, str]]:
    numbered = zip_longest(range(1, width + 1), row, fillvalue="")
    return [(int(at), text) for at, text in numbered]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell_text(cell) for cell in cells) + " |"


def cell_text(text: str) -> str:
    """One line; a bar inside a cell is escaped."""
    return " ".join(text.split()).replace("|", "\\|")
