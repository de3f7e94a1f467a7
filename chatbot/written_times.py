"""Times as other programs write them: which can be read, and which are no times. Pure.

Keeps the wording of a date that is written out and guesses no zone, day or month.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime

from chatbot.words import word_set
from retrieval.calendar_words import MONTH_NAME, month_number

_LATEST_S = 6e10
"""About the year 3871. A larger number counts in milliseconds or microseconds; beyond those, and
so long before 1970, it is a mistake."""
_MAX_CHARACTERS = 100
_NUMBER = re.compile(r"-?[0-9]{9,}(?:\.[0-9]+)?")
_GAP = r"[\s/.,'-]*"
_DAY, _YEAR = r"(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?(?![0-9:])", r"(?P<y>[0-9]{4})(?![0-9])"
_NAME = rf"(?<![^\W\d_])(?P<name>{MONTH_NAME})(?![^\W\d_])\.?"
_DATES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_YEAR}\s?[-/.년]\s?(?P<m>[0-9]{{1,2}})\s?[-/.월]\s?(?P<d>[0-9]{{1,2}})(?![0-9])\s?일?",
        r"(?<![0-9])(?P<y>[0-9]{2})년\s?(?P<m>[0-9]{1,2})월\s?(?P<d>[0-9]{1,2})일",
        rf"(?<![0-9]){_DAY}(?: of)?{_GAP}{_NAME}(?:{_GAP}{_YEAR})?",
        rf"{_NAME}{_GAP}{_DAY}(?:{_GAP}{_YEAR})?",
        rf"{_NAME}{_GAP}{_YEAR}",
        r"(?<![0-9])(?P<m>[0-9]{1,2})[-/.]\s?(?P<d>[0-9]{1,2})[-/.]\s?(?P<y>[0-9]{4}|[0-9]{2})(?![0-9])",
        rf"{_YEAR}\s?[-/.년]\s?(?P<m>[0-9]{{1,2}})(?![0-9])\s?월?",
        r"(?<![0-9])(?P<m>[0-9]{1,2})월\s?(?P<d>[0-9]{1,2})일",
        rf"(?<![0-9]){_YEAR}년?",
    )
)
_CLOCK = re.compile(
    r"(?<![0-9])(?P<h>[0-9]{1,2})(?::(?P<min>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"|시(?!간)(?:\s?(?P<min2>[0-9]{1,2})분)?(?:\s?(?P<s2>[0-9]{1,2})초)?|(?=\s?[ap]\.?m\b))(?![0-9])",
    re.IGNORECASE,
)
_ZONE = re.compile(r"[+-][0-9]{1,2}(?::?[0-9]{2})?(?![0-9])")
_LONE_YEAR = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")
_WORD = re.compile(r"[^\W\d_]+|\d+")


def read_time(value: object) -> str | None:
    """A time as it is kept; None for what is none, such as "yesterday".

    A number counts seconds since 1970 and becomes ISO 8601 in UTC. A text stays as it is if a
    date or a time of day stands in it, and nothing else.
    """
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text) and _instant(text) is None:
            return _of_number(float(text))
        return text if _instant(text) or _is_written_out(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _of_number(value)


def seconds_of(value: object) -> float:
    """When something was, in seconds since 1970, for comparing; 0 where that is not exact."""
    instant = _instant(read_time(value) or "")
    if instant is None:
        return 0.0
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def _of_number(number: float) -> str | None:
    for unit in (1, 1e3, 1e6):
        if abs(number) < _LATEST_S * unit:
            seconds = number / unit
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return None


def _instant(text: str) -> datetime | None:
    if len(text) <= _MAX_CHARACTERS and text.isascii():
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    return None


def _is_written_out(text: str) -> bool:
    if len(text) > _MAX_CHARACTERS:
        return False
    day = next((found for form in _DATES if (found := form.search(text))), None)
    rest = f"{text[: day.start()]} {text[day.end() :]}" if day else text
    clock = _CLOCK.search(rest)
    rest = f"{rest[: clock.start()]} {rest[clock.end() :]}" if clock else rest
    rest = _ZONE.sub(" ", rest, count=1) if clock else rest
    if day and not day.groupdict().get("y"):
        rest = _LONE_YEAR.sub(" ", rest, count=1)
    if not (day or clock) or not _are_beside(rest):
        return False
    return (day is None or _is_day(day.groupdict())) and (clock is None or _is_clock(clock))


def _are_beside(rest: str) -> bool:
    return all(word.lower() in word_set("beside_times") for word in _WORD.findall(rest))


def _is_day(parts: dict[str, str | None]) -> bool:
    """Whether such a day can be; one without a year in some year, its month on either side."""
    year, day = int(parts.get("y") or 2000), int(parts.get("d") or 1)
    name = parts.get("name")
    month = month_number(name) if name else int(parts.get("m") or 1)
    for m, d in ((month, day), (day, month)):
        with suppress(ValueError):
            return bool(date(year or 2000, m, d))
        if name:
            break
    return False


def _is_clock(clock: re.Match[str]) -> bool:
    parts = clock.groupdict()
    minute, second = parts["min"] or parts["min2"] or "0", parts["s"] or parts["s2"] or "0"
    return int(parts["h"]) <= 24 and int(minute) < 60 and int(second) <= 60
