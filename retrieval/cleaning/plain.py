"""Undoes the hard wrapping of plain text, in place: no offset moves. Knows no file format."""

from __future__ import annotations

import re
from itertools import pairwise

from retrieval.cleaning.widths import (
    BULLET,
    NUMBERED,
    columns,
    ends_sentence,
    is_tabular,
    quantile,
)

_MIN_LINES = 10
_COLUMNS = range(50, 121)
_NOT_PROSE = re.compile(r"[{}<>=|]|\w\(|;$|\s{2,}\S|^\s*[#>|+/\\]|https?://")


def unwrapped(text: str) -> str:
    """`text` with single line ends inside paragraphs as spaces, if it is clearly hard-wrapped.

    Clearly: nearly all lines inside paragraphs end at one margin, in mid-sentence. Verse, logs,
    code, lists, tables and one sentence a line fail that, and come back unchanged.
    """
    lines = text.split("\n")
    inner = [line for line, following in pairwise(lines) if line.strip() and following.strip()]
    full = quantile([columns(line.rstrip()) for line in inner], 0.9)
    if len(inner) < _MIN_LINES or full not in _COLUMNS or not _is_wrapped(inner, full):
        return text
    ends = [" " if _goes_on(line, following, full) else "\n" for line, following in pairwise(lines)]
    return "".join(line + end for line, end in zip(lines, [*ends, ""], strict=True))


def _is_wrapped(inner: list[str], full: int) -> bool:
    n_full = sum(0.8 * full <= columns(line.rstrip()) <= 1.15 * full for line in inner)
    n_ended = sum(ends_sentence(line) for line in inner)
    n_prose = sum(_is_prose(line) for line in inner)
    return (
        n_full >= 0.8 * len(inner) and n_ended <= 0.4 * len(inner) and n_prose >= 0.9 * len(inner)
    )


def _is_prose(line: str) -> bool:
    return len(line.split()) >= 5 and not is_tabular(line) and not _NOT_PROSE.search(line.strip())


def _goes_on(line: str, following: str, full: int) -> bool:
    if not line.strip() or not following.strip() or following[:1].isspace():
        return False
    if BULLET.match(following) or NUMBERED.match(following) or is_tabular(line):
        return False
    return columns(line.rstrip()) >= 0.7 * full
