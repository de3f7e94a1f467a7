"""Numbers of a text so that they can be compared: amounts, times of day, units, signs. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from retrieval.calendar_words import MONTH_NAME, month_number
from retrieval.clock_times import TIME, read_time, times_of
from retrieval.counted import period_at, thing_at
from retrieval.number_words import (
    NUMBER_PHRASE,
    SCALES,
    SMALL,
    korean_amount,
    other_share,
    phrase_value,
    scaled,
)
from retrieval.unit_words import UNIT_MARK, unit_after, unit_before

_FIGURE = r"\d+(?:[.,]\d+)*"
_NUMBER = re.compile(
    rf"(?P<ko>{_FIGURE} ?[십백천만억조]+(?: ?{_FIGURE} ?[십백천만억조]+)*"
    r"(?: ?\d[\d,]*(?= ?[원명개]))?)"
    rf"|(?P<figure>{_FIGURE}|(?<![\w.,])\.\d+)|(?P<phrase>{NUMBER_PHRASE})",
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4})([-./]) ?(\d{1,2})\2 ?(\d{1,2})(?![\d.]*\d)")
_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+,\d{1,2}")
_SCALE = re.compile(rf"[ -]?({'|'.join(SCALES)})s?\b", re.IGNORECASE)
_LETTER_SCALE = re.compile(r" ?(k|m|mn|bn)\b", re.IGNORECASE)
_SCALE_LETTERS = {"k": "thousand", "m": "million", "mn": "million", "bn": "billion"}
_RANGE = re.compile(r"(?: ?[-–~] ?| to | or )$")
_MINUS = re.compile(r"(?:(?<!\d)[ \t(|~:=,][-−–]|\b(?:minus|negative) |영하 ?|마이너스 ?)$")
_FALLING = re.compile(
    r"\b(?:below|under|down|f[ae]ll|drop|declin|decreas|loss|lost|los[ei]|reduc|less|discount"
    r"|deduct|cut|debt)|감소|하락|줄|적자|손실|할인|내려|내렸|떨어|공제|차감",
    re.IGNORECASE,
)
_MONTH_BEFORE = re.compile(rf"(?:\b(?P<name>{MONTH_NAME})\.? (?:the )?|(?P<number>\d{{1,2}})월 ?)$")
_MONTH_AFTER = re.compile(rf"(?:st|nd|rd|th)?(?: of)? (?P<name>{MONTH_NAME})\b")
_PERCENT = "percent"
LOOK_BACK = 16
"""Characters before a number in which its sign, month or half of the day may stand."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a text with what stands at it."""

    key: str
    """What another text must have among the `readings` of a number to hold this one."""
    readings: frozenset[str]
    unit: frozenset[str] = frozenset()
    """What its unit may be; empty if there is none that is known."""
    month: int | None = None
    negative: bool | None = False
    """None where words may say so ("5 degrees below zero", "fell by 5 percent")."""
    spelled: bool = False
    """Whether it is written with words."""
    unit_word: str = ""
    """The word that names its unit; empty for a sign or a single letter."""
    share: str = ""
    """The same share in the other form: 0.5 of 50%, 50 of a bare 0.5. It is among the readings."""
    bare: str = ""
    """The figure before its scale: 3 of 3 million. It is none of the readings."""
    thing: str = ""
    """What it counts or measures, by its word or unit."""
    period: str = ""
    """Per how long it is meant."""

    @property
    def soft(self) -> bool:
        """A small number in words, which a reply may have counted itself."""
        return self.spelled and self.key in SMALL

    @property
    def held(self) -> frozenset[str]:
        """Its readings and the unit as they stand among the terms of a text."""
        units = self.unit | ({_PERCENT} if self.share else frozenset())
        return self.readings | {f"{UNIT_MARK}{name}" for name in units}


def read_quantities(text: str) -> list[Quantity]:
    """The numbers of a text in reading order, a date as its parts. Linear in the text's length."""
    text = unicodedata.normalize("NFKC", text)
    found: list[Quantity] = []
    falling = bool(_FALLING.search(text))
    at = 0
    while match := _NUMBER.search(text, at):
        between = text[at : match.start()]
        quantities, at = _read(text, match)
        if falling:
            quantities = [replace(q, negative=q.negative or None) for q in quantities]
        if found and _RANGE.match(between):
            found[-1] = _as_in_range(found[-1], quantities[0])
        found.extend(quantities)
    return found


def numbers_in(text: str) -> set[str]:
    """All readings of the numbers of a text that is to hold those of another one."""
    return {reading for quantity in read_quantities(text) for reading in quantity.readings}


def clash(stated: Sequence[Quantity], known: Sequence[Quantity]) -> bool:
    """Whether a number of the first has another unit, month or sign wherever the second has it."""
    for quantity in stated:
        same = [other for other in known if quantity.key in other.readings]
        if same and all(_differ(quantity, other) for other in same):
            return True
    return False


def miscounts(stated: Sequence[Quantity], known: Sequence[Quantity]) -> bool:
    """Whether a number counts what only another one counts in the second, where it counts
    something else, or is a small one in words that stands for nothing there."""
    for quantity in stated:
        same = [other for other in known if quantity.thing and other.thing == quantity.thing]
        if not same or any(quantity.key in other.readings for other in same):
            continue
        elsewhere = [other for other in known if quantity.key in other.readings]
        if elsewhere and all(q.thing and q.unit.isdisjoint(quantity.unit) for q in elsewhere):
            return True
        # Of several, a reply may have told the sum.
        if not elsewhere and quantity.soft and len({other.key for other in same}) == 1:
            return True
    return False


def _differ(a: Quantity, b: Quantity) -> bool:
    if a.key == b.share and b.key != a.key:  # half a percent is not half
        return (_PERCENT in a.unit) == (_PERCENT in b.unit)
    if a.unit and b.unit and a.unit.isdisjoint(b.unit):
        return True
    if a.period and b.period and a.period != b.period:
        return True
    return bool(a.month and b.month and a.month != b.month) or {a.negative, b.negative} == {
        True,
        False,
    }


def _read(text: str, match: re.Match[str]) -> tuple[list[Quantity], int]:
    start = match.start()
    if match["figure"] and (date := _DATE.match(text, start)):
        return list(_date(date)), date.end()
    if match["figure"] and (time := TIME.match(text, start)) and int(time["hour"]) <= 24:
        key, times = read_time(time, text[max(0, start - LOOK_BACK) : start])
        return [Quantity(key, times)], time.end()
    spelled, bare = bool(match["phrase"]), ""
    if spelled:
        value = phrase_value(match["phrase"])
        readings, end = {value}, match.end()
    elif match["ko"]:
        value = korean_amount(match["ko"])
        readings, end = {value}, match.end()
    else:
        value, bare, end = _figure(text, match)
        readings, spelled = {value}, bool(bare)
    quantity = _at(text, start, end, (value, readings, spelled))
    return [replace(quantity, bare=bare)], end


def _at(text: str, start: int, end: int, number: tuple[str, set[str], bool]) -> Quantity:
    value, readings, spelled = number
    before = text[max(0, start - LOOK_BACK) : start]
    after, unit_end = unit_after(text, end)
    word = text[end:unit_end].split()[-1:]
    unit = after or unit_before(before)
    share = other_share(value, percent=_PERCENT in unit) if unit <= {_PERCENT} else ""
    readings = readings | {share} if share else readings
    if not unit and value.isdecimal() and len(value) <= 2 and int(value) <= 24:
        # A bare number may be an hour.
        readings = readings | times_of(int(value), 0, None)
    return Quantity(
        value,
        frozenset(readings),
        unit,
        _month(text, before, end) if value.isdecimal() and len(value) <= 2 else None,
        bool(_MINUS.search(before)),
        spelled,
        word[0] if word and word[0].isalpha() and len(word[0]) > 1 else "",
        share,
        thing=f"{UNIT_MARK}{min(unit)}" if unit else thing_at(text, end),
        period=period_at(text, before, unit_end),
    )


def _figure(text: str, match: re.Match[str]) -> tuple[str, str, int]:
    """A number in figures with its scale, the figure before that if there is one, and the end.

    The figure alone is no reading of it: 3 euros are not 3 million.
    """
    raw = plain(match["figure"])
    scale = _SCALE.match(text, match.end())
    name = scale[1].lower() if scale else ""
    if not scale and text[max(0, match.start() - 2) : match.start()].rstrip()[-1:] in tuple(
        "$€£¥₩"
    ):
        scale = _LETTER_SCALE.match(text, match.end())
        name = _SCALE_LETTERS[scale[1].lower()] if scale else ""
    if not scale:
        return raw, "", match.end()
    return scaled(raw, SCALES[name]), raw, scale.end()


def plain(figure: str) -> str:
    """A number in figures, without the marks between its thousands and zeros before it."""
    if _EUROPEAN.fullmatch(figure):
        figure = figure.replace(".", "").replace(",", ".")
    figure = figure.replace(",", "")
    if figure.startswith("."):
        return f"0{figure}"
    return figure.lstrip("0") or "0" if figure.isdecimal() else figure


def _as_in_range(first: Quantity, last: Quantity) -> Quantity:
    """3 of "3 to 4 million" may be so many millions too."""
    zeros = len(last.key) - len(last.bare)
    if (
        not last.bare
        or first.bare
        or not (first.key.isdecimal() and last.key.isdecimal() and last.bare.isdecimal())
    ):
        return first
    return replace(first, readings=first.readings | {first.key + "0" * zeros})


def _date(match: re.Match[str]) -> Iterator[Quantity]:
    year, month, day = plain(match[1]), plain(match[3]), plain(match[4])
    yield Quantity(year, frozenset({year}))
    yield Quantity(month, frozenset({month}))
    number = int(month)
    yield Quantity(day, frozenset({day}), month=number if 1 <= number <= 12 else None)


def _month(text: str, before: str, end: int) -> int | None:
    match = _MONTH_BEFORE.search(before)
    if match and match["number"]:
        return int(match["number"])
    match = match or _MONTH_AFTER.match(text, end)
    return month_number(match["name"]) if match else None
