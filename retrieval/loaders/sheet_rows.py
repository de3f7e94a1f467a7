"""Rows of a worksheet to titles and tables as people see them. Knows no file format.

A sheet may hold several tables, parted by empty rows, and lines of title before each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from retrieval.loaders.tables import has_corner, markdown_table

Row = Sequence[str]
_YEAR = re.compile(r"(?:19|20)\d\d$")
_FIGURE = re.compile(r"[-+(]?\W?\d[\d.,:/\s-]*\W{0,2}\)?$")


def sheet_text(rows: Sequence[Row]) -> str:
    """Markdown of all that is filled; empty columns and rows are left out.

    A block of rows that goes on below an empty row, in the same columns and without a header of
    its own, keeps the header of the block before.
    """
    header: Row | None = None
    columns: tuple[int, int] | None = None
    blocks: list[str] = []
    for block in chain.from_iterable(map(_beside, _blocks(rows))):
        titles = _titles(block)
        blocks += [" ".join(filter(None, row)) for row in block[:titles]]
        table = block[titles:]
        if not table:
            continue
        span = _span(table)
        goes_on = header is not None and span == columns and not titles and not _is_header(table)
        if not goes_on:
            header, columns, table = (
                _header(table),
                span,
                table[1:] if _has_header(table) else table,
            )
        blocks.append(markdown_table(_cut(header or (), span), [_cut(row, span) for row in table]))
    return "\n\n".join(blocks)


def _blocks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    for filled, block in groupby(rows, key=any):
        if filled:
            yield list(block)


def _beside(block: list[Row]) -> list[list[Row]]:
    """Tables that stand beside each other, parted by an empty column, at different heights.

    Two that fill the same rows are taken for one table with a gap.
    """
    first, last = _span(block)
    for column in range(first + 1, last - 1):
        if any(row[column] for row in block if column < len(row)):
            continue
        left = [list(row[:column]) for row in block]
        right = [[""] * column + list(row[column:]) for row in block]
        heights = [[at for at, row in enumerate(part) if any(row)] for part in (left, right)]
        if heights[0][0] != heights[1][0] or heights[0][-1] != heights[1][-1]:
            return [
                piece
                for part in (left, right)
                for inner in _blocks(part)
                for piece in _beside(inner)
            ]
    return [block]


def _titles(block: Sequence[Row]) -> int:
    """Lines with a single filled cell before rows with more; a block of such lines is all text."""
    single = [sum(map(bool, row)) == 1 for row in block]
    if all(single):
        return len(block) if len({_span([row]) for row in block}) > 1 or len(block) == 1 else 0
    n_titles = single.index(False)
    if n_titles == 1 and has_corner([_cut(row, _span(block)) for row in block], _is_figure):
        return 0
    return n_titles if n_titles < 10 else 0


def _span(rows: Sequence[Row]) -> tuple[int, int]:
    """First and behind the last filled column."""
    filled = [at for row in rows for at, cell in enumerate(row) if cell]
    return min(filled), max(filled) + 1


def _is_header(table: Sequence[Row]) -> bool:
    """Whether the first row names columns: texts or years, above rows that hold other figures."""
    table = [_cut(row, _span(table)) for row in table]
    first, rest = table[0], table[1:]
    if has_corner(table, _is_figure):
        return True
    if any(_is_figure(cell) and not (at and _YEAR.match(cell)) for at, cell in enumerate(first)):
        return False
    figures = [cell for row in rest for cell in row if _is_figure(cell)]
    if any(map(_is_figure, first)):
        return any(not _YEAR.match(cell) for cell in figures)
    return not rest or bool(figures)


def _is_figure(cell: str) -> bool:
    return _FIGURE.match(cell) is not None


def _has_header(table: Sequence[Row]) -> bool:
    if len(table) < 2:
        return False
    table = [_cut(row, _span(table)) for row in table]
    figures_only = all(_is_figure(cell) for cell in table[0] if cell)
    return not figures_only or has_corner(table, _is_figure)


def _header(table: Sequence[Row]) -> Row:
    return table[0] if _has_header(table) else ()


def _cut(row: Row, span: tuple[int, int]) -> list[str]:
    return list(row[span[0] : span[1]])
