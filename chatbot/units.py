"""What a figure counts: its unit, and which units measure the same. Knows no values."""

from __future__ import annotations

import re

from chatbot.words import word_set

SCALE = re.compile(
    r"\s?(천만|백만|십만|만|천|백|억|조|k\b|thousand|hundred|million|billion)", re.IGNORECASE
)
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "₩": "원"}
_UNIT = re.compile(
    r"[\s-]{0,2}(%|[A-Za-z]+|시간|만원|퍼센트|킬로그램|킬로미터|킬로|그램|센티미터|센티|미터|파운드|마리|사람|가지|유로|달러|개월|[원명개번시살권잔달주장대곳층호박일월년분병])"
)
_ORDINAL = re.compile(r"^(?:st|nd|rd|th)\b")
_UNIT_NAMES = {
    "%": "percent", "퍼센트": "percent", "eur": "euro", "usd": "dollar", "krw": "원", "won": "원",
    "유로": "euro", "달러": "dollar", "사람": "명", "kilometre": "km", "kilometer": "km",
    "hr": "hour", "hrs": "hour", "h": "hour", "min": "minute", "mins": "minute", "kilogram": "kg",
    "kilo": "kg", "yr": "year", "yrs": "year", "metre": "m", "meter": "m", "lb": "pound",
    "lbs": "pound", "ounce": "oz", "feet": "foot", "ft": "foot", "킬로그램": "kg", "킬로": "kg",
    "그램": "g", "킬로미터": "km", "미터": "m", "센티미터": "cm", "센티": "cm", "파운드": "pound",
    "kms": "km", "millilitre": "ml", "milliliter": "ml", "liter": "litre", "l": "litre",
}  # fmt: skip
_GROUPS = (
    "kg g mg oz pound ton", "km m cm mm mile foot inch", "litre ml", "euro dollar pound 원",
    "second minute hour day week month year", "시간 분 일 주 개월 년",
)  # fmt: skip
RIVALS = {
    unit: frozenset(other for group in _GROUPS if unit in group.split() for other in group.split())
    - {unit}
    for unit in " ".join(_GROUPS).split()
}
"""The other units of the same quantity: a figure that has one of them there has not this here."""


def unit_at(text: str, start: int, end: int) -> str:
    """The unit of a figure: a currency sign before it, or the word behind it without its plural."""
    before = text[max(0, start - 2) : start].rstrip()[-1:]
    if before in _CURRENCIES:
        return _CURRENCIES[before]
    after = _ORDINAL.sub("", text[end : end + 30])
    if scale := SCALE.match(after):
        after = after[scale.end() :]
    found = _UNIT.match(after)
    if found is None:
        return ""
    word = found.group(1).lower()
    if word in _UNIT_NAMES:
        return _UNIT_NAMES[word]
    singular = word.removesuffix("s") if len(word) > 3 else word
    return "" if word in word_set("no_units") else _UNIT_NAMES.get(singular, singular)
