"""Months and days of the week by their names, in English and Korean. Pure."""

from __future__ import annotations

import re

_MONTHS = """january jan
february feb
march mar
april apr
may
june jun
july jul
august aug
september sept sep
october oct
november nov
december dec"""
_DAYS = """monday mon 월
tuesday tues tue 화
wednesday wed 수
thursday thurs thur thu 목
friday fri 금
saturday sat 토
sunday sun 일"""
_SEVERAL = {"평일": range(5), "주중": range(5), "주말": range(5, 7), "매일": range(7)}


def _table(text: str) -> dict[str, int]:
    rows = enumerate(text.splitlines(), start=1)
    return {name: number for number, row in rows for name in row.split()}


_MONTH_OF, _DAY_OF = _table(_MONTHS), _table(_DAYS)
MONTH_NAME = "|".join(f"{name[0].upper()}{name[1:]}" for name in _MONTH_OF)
"""A pattern; in capitals only, for may and march are other words too."""
DAY_KEY = re.compile("[mw]\\d+")
"""A month or a day of the week, as its key."""
_WORD = re.compile(r"[A-Za-z]+")
_KOREAN_DAY = re.compile(
    r"(?<![가-힣])([월화수목금토일](?:[·,/~-][월화수목금토일])*)(?:요일|(?![가-힣]))"
)
_DATE = re.compile(r"\d{4}[-./] ?(\d{1,2})[-./] ?\d{1,2}(?!\d)|(?<!\d)(\d{1,2})월")
# Elsewhere May is a name, or begins a sentence.
_MAY = re.compile(
    r"\b(?:in|of|since|until|till|by|from|to|through|during|before|after|early|late|and|or|between"
    r"|last|next|this) May\b|\bMay \d|\d(?:st|nd|rd|th)?(?: of)? May\b"
)


def month_number(name: str) -> int:
    return _MONTH_OF[name.lower()]


def key_of(name: str) -> str | None:
    """The key of an English month or day of the week; None for another word."""
    word = name.lower()
    word = word if word in _DAY_OF or word in _MONTH_OF else word.removesuffix("s")
    if word in _MONTH_OF:
        return f"m{_MONTH_OF[word]}"
    return f"w{_DAY_OF[word]}" if word in _DAY_OF else None


def stated_days(text: str) -> set[str]:
    """Keys of what a statement names beyond its English names: May, and Korean days."""
    may = {"m5"} if _MAY.search(text) else set()
    return may | {f"w{_DAY_OF[day]}" for day in re.findall("([월화수목금토일])요일", text)}


def calendar_in(text: str) -> set[str]:
    """Keys of all months and days of the week that a text may be speaking of."""
    keys = {key for word in _WORD.findall(text) if word != "may" and (key := key_of(word))}
    for days in _KOREAN_DAY.findall(text):
        keys |= {f"w{_DAY_OF[day]}" for day in days if day in _DAY_OF}
        if len(days) == 3 and days[1] in "~-":
            keys |= {f"w{n}" for n in range(_DAY_OF[days[0]], _DAY_OF[days[2]])}
    for word, numbers in _SEVERAL.items():
        keys |= {f"w{n + 1}" for n in numbers if word in text}
    return keys | {f"m{int(a or b)}" for a, b in _DATE.findall(text)}
