"""Korean amounts of several parts or in words, such as 8만 5천 or 만오천. Knows no units."""

from __future__ import annotations

import re
from collections.abc import Iterator

Amount = tuple[int, int, tuple[float, ...]]
"""Where it starts and ends in the text, and its value; two where people mean either."""

_SMALL = {"십": 10, "백": 100, "천": 1000}
_LARGE = {"만": 10**4, "억": 10**8, "조": 10**12}
_DIGITS = {letter: n for n, letter in enumerate("일이삼사오육칠팔구", start=1)}
# Possessive and atomic, so that long runs of digits cost no more than their length.
_FIGURE = r"\d[\d,]*+(?:\.\d++)?+"
_ONE = rf"(?:(?:{_FIGURE}|[일이삼사오육칠팔구])\s?)?"
_SECTION = "".join(rf"(?>{_ONE}{scale}\s?)?" for scale in "천백십")
_LARGE_PARTS = "".join(rf"(?>{_SECTION}(?>{_FIGURE})?\s?{scale}\s?)?" for scale in "조억만")
_LAST = rf"(?>{_FIGURE})(?=\s?(?:여\s|정도\s)?(?:원|달러|유로|엔|위안|명|개|부|권|km|보|[.,]?\Z))"
"""A part without a scale: 3만 2024년 are two figures."""
_COMPOUND = re.compile(rf"(?<![가-힣\d.,])(?<!\d\s){_LARGE_PARTS}{_SECTION}(?:{_LAST})?")
_START = re.compile(r"(?<![가-힣\d.,])(?=\d|[만천백]\s?\d)")
_PIECE = re.compile(rf"{_FIGURE}|[일이삼사오육칠팔구십백천만억조]")
_LOOSE = re.compile(r"억\s?\d천$")
_SPELLED = re.compile(
    r"(?<![가-힣\d])(?<!\d\s)((?:[일이삼사오육칠팔구십백천]*[만억]\s){0,3}[일이삼사오육칠팔구십백천만억]+)\s?"
    r"(?=원|명|년|월|일|분|개|퍼센트|층|호|킬로|미터|달러|유로)"
)
_ALONE = frozenset("백천만")
"""Words of scale that are amounts by themselves; 십 is not said alone."""


def compounds(text: str) -> Iterator[Amount]:
    """Amounts with digits and more than one part: 8만 5천, 3억 2천, 12만 3,400원, 만 5천 원.

    The last part of 3억 2천 counts in 만, as people say it, or is meant as written.
    """
    at = 0
    while start := _START.search(text, at):
        found = _COMPOUND.match(text, start.start())
        words = found.group().rstrip() if found else ""
        at = start.start() + max(1, len(words))
        if len(_PIECE.findall(words)) > 2:
            value = _value(words)
            loose = value + (_value(words[-2:]) * 9999 if _LOOSE.search(words) else 0)
            yield start.start(), at, (value, loose)


def spelled_amounts(text: str) -> Iterator[Amount]:
    """Amounts in words before what they count: 만오천 원, 삼십만 원, 만 원."""
    for match in _SPELLED.finditer(text):
        words = match.group(1)
        if len(words) > 1 or words in _ALONE:
            yield match.start(1), match.end(1), (_value(words),)


def _value(words: str) -> float:
    total = section = digit = 0.0
    for piece in _PIECE.findall(words):
        if piece in _LARGE:
            total, section, digit = total + max(1, section + digit) * _LARGE[piece], 0, 0
        elif piece in _SMALL:
            section, digit = section + max(1, digit) * _SMALL[piece], 0
        else:
            digit = _DIGITS[piece] if piece in _DIGITS else float(piece.replace(",", ""))
    return total + section + digit
