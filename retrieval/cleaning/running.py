"""Finds running headers, footers and page numbers by their repetition. Knows no language."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

_EDGE_LINES = 3
_NEAR_PAGES = 4
_MIN_PAGES = 3
_MAX_CHARACTERS = 120
_ROUNDS = 3
_MAX_MISSING = 30
_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"[ivxlc]+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_WORDS = 4

Place = tuple[int, int]  # page, line


def running_lines(pages: Sequence[Sequence[str]]) -> set[Place]:
    """Places of lines that only repeat what stands on other pages.

    A line is running when its text, with every number as `#`, stands at the edge (first or last
    three lines, since extraction may put the footer first) of at least three pages, another of
    them within four pages. Of lines that are all the same the first stays: it may be the title.
    Whole sentences that differ in their numbers are not running lines, however these count.
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


def kinds(lines: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """One line of each kind (as it first stood) with how many there are, the most common first."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for line in lines:
        key = _key(line)
        first.setdefault(key, " ".join(line.split()))
        counts[key] += 1
    return tuple((first[key], count) for key, count in counts.most_common())


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
        if "#" in key:
            group = _counting(group, pages, bare=not any(letter.isalpha() for letter in key))
            if _is_sentence(key) and len({pages[page][line] for page, line in group}) > 1:
                continue
        keeps = len({pages[page][line].strip() for page, line in group}) == 1
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


def _is_sentence(key: str) -> bool:
    """Says something, so that other numbers make it another statement and not another page."""
    return key.endswith((".", "!", "?", "。")) and len(_WORD.findall(key)) >= _SENTENCE_WORDS


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


def _counting(places: list[Place], pages: Sequence[Sequence[str]], *, bare: bool) -> list[Place]:
    """Those whose numbers behave like page and chapter numbers.

    Each number goes up with the pages or is that of a neighbour; in a line of nothing but
    numbers one must go up. Else the figures of forms and tables would be taken for them.
    """
    rows = [_numbers(pages[page][line]) for page, line in places]
    offsets = Counter(
        (at, value - page)
        for (page, _), row in zip(places, rows, strict=True)
        for at, value in enumerate(row)
    )
    found = []
    for at, (place, row) in enumerate(zip(places, rows, strict=True)):
        near = [
            (page - place[0], other)
            for (page, _), other in zip(
                places[max(0, at - 1) : at + 2], rows[max(0, at - 1) : at + 2], strict=True
            )
            if page != place[0]
        ]
        counts = [
            offsets[column, value - place[0]] >= _MIN_PAGES
            or (column in _outer(pages[place[0]][place[1]], row) and _rises(column, value, near))
            for column, value in enumerate(row)
        ]
        same = [
            any(other[column : column + 1] == [value] for _, other in near)
            for column, value in enumerate(row)
        ]
        fits = all(a or b for a, b in zip(counts, same, strict=True))
        if fits and (any(counts) or not bare):
            found.append(place)
    return found


def _outer(line: str, row: list[int]) -> set[int]:
    """Which of its numbers a line starts or ends with."""
    text = line.strip()
    ends = [(text[:1], 0), (text[-1:], len(row) - 1)]
    return {column for letter, column in ends if letter.isdigit()}


def _rises(column: int, value: int, near: list[tuple[int, list[int]]]) -> bool:
    """Goes up with the pages, though some are missing (extracts of books)."""
    steps = [(n_pages, other[column] - value) for n_pages, other in near if column < len(other)]
    return bool(steps) and all(
        0 < step * (1 if n_pages > 0 else -1) <= abs(n_pages) + _MAX_MISSING
        for n_pages, step in steps
    )


def _numbers(line: str) -> list[int]:
    numbers = [int(number) for number in _NUMBER.findall(line) if len(number) < 12]
    return numbers or [_roman(line.strip())]


def _roman(text: str) -> int:
    values = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
    digits = [values.get(letter, 0) for letter in text.casefold()]
    pairs = zip(digits, [*digits[1:], 0], strict=True)
    return sum(-digit if digit < after else digit for digit, after in pairs)
