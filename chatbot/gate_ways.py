"""Whether a summary keeps which way things go: from and to, there and back, up and down.

Knows texts only. Refused is only what the source has the other way round, and never this way.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from chatbot.gate_binding import said
from chatbot.line_values import values
from chatbot.words import lines

_ITEM = r"[$€£]?[\w:.,'’-]*\w(?:\s?(?:euros?|dollars?|pounds?|percent|people|%))?"
_FROM_TO = re.compile(
    rf"\bfrom (?:the |about )?({_ITEM})(?: [a-z]+){{0,2}}? to (?:the |about )?({_ITEM})",
    re.IGNORECASE,
)
_FROM_TO_KO = re.compile(
    r"([가-힣A-Za-z\d,.]+(?:\s[만천억]?\s?원)?)(?:에서|부터)\s([가-힣A-Za-z\d,.]+?(?:\s[만천억]?\s?원)?)(?:으로|로|까지)"
    r"(?![가-힣])"
)
_PART = re.compile(
    r"[;:,]\s|\s[–—-]\s|\s(?:and|but|then|while|until)\s|(?<=[고며서])\s|(?<=지만)\s|(?<=는데)\s|(?<=여)\s"
)
_SPAN = re.compile(
    r"\b(?:to|until|till|through) (?:the )?(?:\w+ )?\d|\d\s?[–~-]\s?\d|까지|부터", re.IGNORECASE
)
"""From one day to another: both stand beside the verb of the first."""
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b(?![:.,]\d)|(\d{1,2})일")


def from_and_to(text: str, source: str) -> Iterator[str]:
    """ "From 910 to 850" where the source has "from 850 to 910"."""
    for pattern in (_FROM_TO, _FROM_TO_KO):
        known = {_plain(pair) for pair in pattern.findall(source)}
        for pair in pattern.findall(text):
            start, end = _plain(pair)
            if start != end and (end, start) in known and (start, end) not in known:
                yield f"{pair[0]}, {pair[1]}"


def _plain(pair: tuple[str, str]) -> tuple[str, str]:
    first, second = (
        "".join(re.findall(r"\d+", re.sub(r"(?<=\d),(?=\d{3})", "", word)))
        or re.sub(r"\W", "", word).casefold()
        for word in pair
    )
    return first, second


def other_way(text: str, source: str) -> Iterator[str]:
    """Days and times that the source gives to the opposite: the way back for the way there."""
    for axis in _axes("ways"):
        stated = list(_bound(text, axis))
        if not stated:
            continue
        known: dict[str, set[bool]] = defaultdict(set)
        for value, side, _ in _bound(source, axis):
            known[value].add(side)
        yield from (
            wording for value, side, wording in stated if known[value] and side not in known[value]
        )


def _bound(text: str, axis: tuple[re.Pattern[str], ...]) -> Iterator[tuple[str, bool, str]]:
    """Days and times of the clauses that have one side of an axis, with the side."""
    for sentence in said(text):
        for part in _PART.split(sentence):
            sides = [bool(pattern.search(part)) for pattern in axis]
            if sum(sides) == 1 and not _SPAN.search(part):
                days = [(v.key.split("-")[-1], v.text) for v in values(part) if v.kind == "date"]
                days = days or [(a or b, a or b) for a, b in _DAY.findall(part)]
                times = [(v.key, v.text) for v in values(part) if v.kind == "time"]
                yield from ((key, sides[0], shown) for key, shown in (*days, *times))


def opposite_verbs(text: str, source: str) -> Iterator[str]:
    """ "Lowered" where the source only has "raised", or "lost" where it only has "won"."""
    for axis in _axes("opposites"):
        for mine, other in (axis, axis[::-1]):
            found = mine.search(text)
            only_other = other.search(source) and not mine.search(source)
            if found and only_other and not other.search(text):
                yield found.group()


@cache
def _axes(name: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """Pairs of patterns: two lines of a file are one."""
    found = [re.compile(line, re.IGNORECASE) for line in lines(name)]
    return tuple((found[n], found[n + 1]) for n in range(0, len(found), 2))
