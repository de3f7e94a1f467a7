"""Puts lines that were wrapped at the page's edge together again. Knows no file format.

Only widths and words are known here, no positions: a line that fills the column goes on in the
next one, a shorter one has ended. Wrong joins are worse than missed ones, so in doubt a line
end stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from retrieval.cleaning.widths import (
    BULLET,
    NUMBERED,
    columns,
    ends_sentence,
    is_tabular,
    quantile,
)

HYPHEN = "\u00ad"
_MIN_COLUMNS = 30  # narrower text is no prose: slides, labels, forms
_FULL = 0.72  # of the usual width: the line goes on
_QUITE_FULL = 0.9  # and even when it ends with a sentence
_ALIKE = 0.1  # lines of a block differ by so much of their width at most
_MIN_BREAKS = 8  # fewer lines do not show a habit
_EVEN_SLACK = 1.5
"""Columns that stay free on average. Measured on 11 Korean legal texts, wrapped at 34 to 90
columns: 0.4 to 1.1 where lines break anywhere, 1.1 to 2.2 (34 columns) and 2.2 to 6 (wider)
between words. Right joins at 600 / 20,000 characters: .98 / 1.0 and .98 / .95 when ends of words
show as spaces; without them .9 / .9 between words, .6 / .75 anywhere (nothing shows there which
breaks were spaces, only words that the document has elsewhere)."""
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_LAST_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*$")
_FIRST_WORD = re.compile(r"[^\W_]+")
_CLOSING = tuple(".,;:!?)]}”’」』》〉%")
_EDGE_NUMBER = re.compile(r"^\s*\d{1,4}\s|\s\d{1,4}\s*$")
_VARIABLE = re.compile(r"(?:^|[\s(=])\w$")
_INDEX = re.compile(r"\d(?:$|\s[^\W\d_A-Z]|\s?[,;)])")
_HANGUL = re.compile("[가-힣]")


@dataclass(frozen=True, slots=True)
class Habits:
    """What a whole document tells about its lines: the words in it and how it breaks Korean.

    `korean_glue` goes between two lines that both have Hangul at the break, "" or " ".
    """

    words: Counter[str]
    korean_glue: str
    marked: bool = False
    """Whether a space at a line's end says that a word ends there, and its lack the contrary."""


def habits(pages: Iterable[Sequence[str]]) -> Habits:
    """Korean is wrapped either between words or anywhere, and the text shows which.

    Where lines end in spaces, those mark the word ends, so a bare end is inside a word. Without
    any, lines of nearly one width can only come from breaking anywhere, uneven ones from
    breaking between words.
    """
    lines = [line for page in pages for line in page if line.strip()]
    text = "\n".join(lines)
    if HYPHEN not in text and not _HANGUL.search(text):
        return Habits(Counter(), " ")  # nothing to decide
    words = Counter(_WORD.findall(text))
    widths = [columns(line.rstrip()) for line in lines]
    broken = [
        at
        for at, line in enumerate(lines)
        if _HANGUL.match(line.rstrip()[-1:]) and _is_in_block(widths, at)
    ]
    if not broken:
        return Habits(words, " ")
    n_spaced = sum(lines[at] != lines[at].rstrip() for at in broken)
    if n_spaced * 10 >= len(broken):
        return Habits(words, " " if n_spaced * 10 >= len(broken) * 9 else "", marked=True)
    slack = mean(_slack(widths, at) for at in broken)
    return Habits(words, "" if slack < _EVEN_SLACK and len(broken) >= _MIN_BREAKS else " ")


def _slack(widths: Sequence[int], at: int) -> int:
    """Columns that line `at` leaves free, by the lines around it."""
    own = widths[at]
    return max(width for width in widths[max(0, at - 3) : at + 4] if width <= 1.35 * own) - own


def rejoin(lines: Sequence[str], habit: Habits) -> str:
    """The lines of one page as paragraphs, one a line."""
    widths = [columns(line.rstrip()) for line in lines]
    full = quantile([width for width in widths if width], 0.85)
    parts: list[str] = []
    for at, line in enumerate(lines):
        if at and widths[at - 1] and not (at == 1 and _EDGE_NUMBER.search(lines[0])):
            width = _full(widths, at - 1, full)
            if _is_raised(lines[at - 1].rstrip(), line.lstrip()) or (
                _goes_on(lines[at - 1], line, width) and not _is_label(parts[-1], line, width)
            ):
                parts[-1] = glued(parts[-1], line, habit)
                continue
        parts.append(line)
    return "\n".join(_without_marks(part.strip()) for part in parts).strip("\n")


def _is_label(paragraph: str, line: str, full: int) -> bool:
    """A short line without an end: a heading or a cell, but in a list the end of its point."""
    if ends_sentence(line) or line.lstrip()[:1].islower() or paragraph.rstrip().endswith(HYPHEN):
        return False
    return columns(line.rstrip()) < 0.6 * full and not BULLET.match(paragraph)


def _block(widths: Sequence[int], at: int) -> list[int]:
    """The widths near line `at` that are like its own, its own among them."""
    near = widths[max(0, at - 3) : at + 4]
    return [width for width in near if abs(width - widths[at]) <= _ALIKE * widths[at]]


def _full(widths: Sequence[int], at: int, page_full: int) -> int:
    """The width that a line must nearly have to go on: less in a narrow column."""
    return min(page_full, max(_block(widths, at))) if _is_in_block(widths, at) else page_full


def _is_in_block(widths: Sequence[int], at: int) -> bool:
    return widths[at] >= _MIN_COLUMNS and len(_block(widths, at)) >= 3


def continues(before: str, after: str) -> bool:
    """Whether the text of a page goes on in the middle of a sentence on the next."""
    last, first = before.rsplit("\n", 1)[-1], after.split("\n", 1)[0]
    full = max(columns(last), columns(first))
    if not last or not first or ends_sentence(last) or full < 2 * _MIN_COLUMNS:
        return False
    return _goes_on(last, first, min(full, columns(last)))


def glued(before: str, after: str, habit: Habits) -> str:
    """Two pieces of one paragraph as one text."""
    after = after.lstrip()
    if before.rstrip().endswith(HYPHEN):
        return _dehyphenated(before.rstrip()[: -len(HYPHEN)], after, habit)
    if after[:1] in _CLOSING:
        return before.rstrip() + after
    if before != before.rstrip():
        return before.rstrip() + " " + after
    if _HANGUL.match(before[-1:]) and _HANGUL.match(after[:1]):
        return before + _korean_glue(before, after, habit) + after
    return before + " " + after


def _goes_on(line: str, following: str, full: int) -> bool:
    bare, start = line.rstrip(), following.lstrip()
    if bare.endswith(HYPHEN):
        return True
    if full < _MIN_COLUMNS or not start:
        return False
    width = columns(bare)
    if width < _FULL * full and not (start[0].islower() and width >= 0.4 * full):
        return False
    ended = ends_sentence(bare)
    if ended and width < _QUITE_FULL * full:
        return False
    if BULLET.match(start) or is_tabular(bare) or is_tabular(start):
        return False
    return not (NUMBERED.match(start) and (ended or width < _QUITE_FULL * full))


def _is_raised(bare: str, start: str) -> bool:
    """Exponents and indices come out as lines of their own: "S", "2", "is a sphere"."""
    if start[:1].isdigit() and bare[-1:].isalpha() and _VARIABLE.search(bare[-2:]):
        return _INDEX.match(start) is not None
    if len(bare) > 2 or not bare.isalnum() or not start:
        return False
    return start[0] in ".,;:)" or (bare.isdigit() and start[0].islower())


def _dehyphenated(before: str, after: str, habit: Habits) -> str:
    """A wrapped word loses its hyphen, a compound that happened to be broken there keeps it."""
    head, tail = _LAST_WORD.search(before), _FIRST_WORD.match(after)
    if head is None or tail is None:
        return before + "-" + after
    left, right = head.group(), tail.group()
    if habit.words[f"{left}-{right}"] > habit.words[left + right]:
        return before + "-" + after
    if not habit.words[left + right] and ("-" in left or not right[:1].islower()):
        return before + "-" + after
    return before + after


def _korean_glue(before: str, after: str, habit: Habits) -> str:
    """The document's own words decide where they can, else its habit."""
    head, tail = _LAST_WORD.search(before), _FIRST_WORD.match(after)
    if head is not None and tail is not None and not habit.marked:
        n_whole = habit.words[head.group() + tail.group()]
        n_apart = min(habit.words[head.group()] - 1, habit.words[tail.group()] - 1)
        if n_whole > n_apart:
            return ""
        if n_apart > n_whole:
            return " "
    return habit.korean_glue


def _without_marks(text: str) -> str:
    """Hyphens that were marked but not at a line's end: they are what they look like."""
    if HYPHEN not in text:
        return text
    return re.sub(rf"(?<=\w){HYPHEN}(?=\w)", "", text).replace(HYPHEN, "-")
