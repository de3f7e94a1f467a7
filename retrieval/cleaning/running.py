"""Finds running headers, footers and page numbers by their repetition. Knows no language."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

_EDGE_LINES = 3
_NEAR_PAGES = 4
_MIN_PAGES = 3
_MAX_CHARACTERS = 120
_ROUNDS = 3
_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"[ivxlc]+", re.IGNORECASE)

Place = tuple[int, int]  # page, line


def running_lines(pages: Sequence[Sequence[str]]) -> set[Place]:
    """Places of lines that only repeat what stands on other pages.

    A line is running when its text, with every number as `#`, stands at the edge (first or last
    three lines, since extraction may put the footer first) of at least three pages, another of
    them within four pages. Of a line without numbers the first stays: it may be the title.
    Headers of more lines are peeled off in a few rounds.
    """
    running: set[Place] = set()
    kept: set[Place] = set()
    for _ in range(_ROUNDS):
        found, first = _round(pages, running | kept)
        if not found:
            break
        running |= found
        kept |= first  # looked through, so that the lines behind them are seen
    return running


def _round(pages: Sequence[Sequence[str]], known: set[Place]) -> tuple[set[Place], set[Place]]:
    """New running lines, and the first ones of their kind, which stay."""
    places: dict[str, list[Place]] = defaultdict(list)
    for at, lines in enumerate(pages):
        for line in _edges(lines, at, known):
            if key := _key(lines[line]):
                places[key].append((at, line))
    found: set[Place] = set()
    first: set[Place] = set()
    for key, group in places.items():
        least = _MIN_PAGES if len(key) <= _MAX_CHARACTERS else max(5, len(pages) // 3)
        group = _repeated(group, least)
        if not any(letter.isalpha() for letter in key):
            group = _counting(group, pages)
        keeps = bool(group) and "#" not in key
        found.update(group[1:] if keeps else group)
        first.update(group[:1] if keeps else ())
    return found, first


def _edges(lines: Sequence[str], page: int, known: set[Place]) -> list[int]:
    """The first and the last lines with text, looking through those that are known already."""
    top = _first(range(len(lines)), lines, page, known)
    return sorted({*top, *_first(range(len(lines) - 1, -1, -1), lines, page, known)})


def _first(order: range, lines: Sequence[str], page: int, known: set[Place]) -> list[int]:
    found: list[int] = []
    for at in order:
        if lines[at].strip() and (page, at) not in known:
            found.append(at)
            if len(found) == _EDGE_LINES:
                break
    return found


def _key(line: str) -> str:
    """ "" for lines without a letter or digit. Long ones must agree to the last number."""
    text = " ".join(line.split())
    if not any(letter.isalnum() for letter in text):
        return ""
    if len(text) > _MAX_CHARACTERS:
        return text
    return "#" if _ROMAN.fullmatch(text) else _NUMBER.sub("#", text).casefold()


def _repeated(places: list[Place], least: int) -> list[Place]:
    numbers = sorted({page for page, _ in places})
    if len(numbers) < least:
        return []
    near = {
        page
        for before, page, after in zip(
            [-99, *numbers], numbers, [*numbers[1:], 10**9], strict=False
        )
        if page - before <= _NEAR_PAGES or after - page <= _NEAR_PAGES
    }
    return [place for place in places if place[0] in near]


def _counting(places: list[Place], pages: Sequence[Sequence[str]]) -> list[Place]:
    """Bare numbers count as page numbers only where they go up with the pages.

    Otherwise the last rows of tables of numbers would be taken for them.
    """
    offsets: dict[int, list[Place]] = defaultdict(list)
    for page, line in places:
        text = pages[page][line].strip()
        number = _NUMBER.search(text)
        value = int(number.group()) if number and len(number.group()) < 9 else _roman(text)
        offsets[value - page].append((page, line))
    return sorted(
        place for group in offsets.values() if len(group) >= _MIN_PAGES for place in group
    )


def _roman(text: str) -> int:
    values = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
    digits = [values.get(letter, 0) for letter in text.casefold()]
    pairs = zip(digits, [*digits[1:], 0], strict=True)
    return sum(-digit if digit < after else digit for digit, after in pairs)
