"""Numbers in English and Korean text, in forms that can be compared. Knows no chat and no names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from chatbot.korean_amounts import compounds, spelled_amounts
from chatbot.units import SCALE, unit_at

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_SCALES = {
    "천만": 10**7, "백만": 10**6, "십만": 10**5, "만": 10**4, "천": 1000, "백": 100, "억": 10**8,
    "조": 10**12, "k": 1000, "thousand": 1000, "hundred": 100, "million": 10**6,
    "billion": 10**9,
}  # fmt: skip
_AFTERNOON = re.compile(r"(?:\s?(?::\d\d)?\s?(?:pm\b|p\.m))", re.IGNORECASE)
_KOREAN_AFTERNOON = re.compile(r"(?:오후|저녁|밤)\s?$")
_LONG = 15
_LIST_MARK = re.compile(r"(?m)^[ \t]*\d{1,3}[.)]\s")


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _numbered(words: str, values: Iterable[int]) -> dict[str, int]:
    return dict(zip(words.split(), values, strict=True))


# Not "one" and "two", which count things more often than they state a figure.
_ENGLISH_SMALL = _numbered(
    "three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen",
    range(3, 20),
)
_ENGLISH_TENS = _numbered(
    "twenty thirty forty fifty sixty seventy eighty ninety", range(20, 100, 10)
)
_ENGLISH_UNITS = {"one": 1, "two": 2, **{w: n for w, n in _ENGLISH_SMALL.items() if n < 10}}
_ENGLISH_NUMBER = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_ENGLISH_TENS)})(?:[- ](?P<unit>{'|'.join(_ENGLISH_UNITS)})\b)?"
    rf"|(?P<small>{'|'.join(sorted(_ENGLISH_SMALL, key=len, reverse=True))})"
    r"|(?P<dozen>dozen)|(?P<few>one|two|a)(?=\s(?:hundred|thousand|million|billion)\b))\b",
    re.IGNORECASE,
)
_KOREAN_NATIVE = {
    "한": 1, "하나": 1, "두": 2, "둘": 2, "세": 3, "셋": 3, "네": 4, "넷": 4, "다섯": 5,
    "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10, "열한": 11, "열두": 12, "열세": 13,
    "열네": 14, "열다섯": 15, "스무": 20, "스물": 20, "서른": 30, "마흔": 40, "쉰": 50,
}  # fmt: skip
_KOREAN_NUMBER = re.compile(
    rf"(?<![가-힣])({'|'.join(sorted(_KOREAN_NATIVE, key=len, reverse=True))})\s?"
    r"(?=명|개|번|시|살|마리|권|잔|달|시간|가지|주|장|대|곳|병|끼|켤레|그루|사람|부|곡|편|통|줄|송이|벌|채|건|회|판|차례|배|층|과목|조각|숟갈|모금)"
)
MONEY = _word_set("euro dollar pound 원 만원")
MEASURES = _word_set(
    "second minute hour day week month year euro dollar pound percent km m cm mm mile kg g gram"
    " litre ml oz mg ton foot inch degree kcal mb gb 개월 원 시간 분 일 주 월 년 달 시 박 살"
)
"""Units under which two figures cannot mean the same thing by chance."""
_MONTHS = _numbered(
    "january february march april may june july august september october november december",
    range(1, 13),
)


@dataclass(frozen=True, slots=True)
class Number:
    """A figure as written, with every form under which it may stand elsewhere."""

    text: str
    forms: frozenset[str]
    unit: str = ""
    """What it counts: a unit of measure, or the word behind it; "" if that is not clear."""


def numbers(text: str, *, list_marks: bool = False) -> list[Number]:
    """All figures of a text, in digits or words. Marks of numbered lists only if asked for."""
    plain = text if list_marks else _LIST_MARK.sub(" ", text)
    found = []
    for start, end, either in compounds(plain):
        forms = frozenset(map(_written, either))
        found.append(Number(plain[start:end], forms, unit_at(plain, start, end)))
        # Its parts are no figures of their own.
        plain = plain[:start] + " " * (end - start) + plain[end:]
    found += [
        Number(match.group(), _digit_forms(plain, match), unit_at(plain, *match.span()))
        for match in _NUMBER.finditer(plain)
    ]
    for match in _ENGLISH_NUMBER.finditer(plain):
        forms = _scaled(_english_value(match), plain[match.end() : match.end() + 12])
        found.append(Number(match.group(), forms, unit_at(plain, *match.span())))
    for match in _KOREAN_NUMBER.finditer(plain):
        forms = _scaled(float(_KOREAN_NATIVE[match.group(1)]), "")
        found.append(Number(match.group().strip(), forms, unit_at(plain, *match.span())))
    for start, end, either in spelled_amounts(plain):
        forms = frozenset(map(_written, either))
        found.append(Number(plain[start:end], forms, unit_at(plain, start, end)))
    return found


def number_forms(text: str) -> frozenset[str]:
    """Every form of every figure of a text, months by name counted as their numbers."""
    lower = text.lower()
    forms = {form for number in numbers(text, list_marks=True) for form in number.forms}
    forms |= {str(month) for month in months_in(text)}
    forms |= {value for value, pattern in _FEW.items() if re.search(pattern, lower)}
    return frozenset(forms)


def months_in(text: str) -> frozenset[int]:
    """Months, 1 to 12, that a text names by word, as 3월, 2024-03-14 or 3/14."""
    words = re.findall(r"[A-Za-z]{3,9}", text)
    found = {m for w in words if w not in ("may", "march") and (m := month_of(w))}
    found |= {int(m) for match in _MONTH_FIGURE.findall(text) for m in match if m}
    return frozenset(m for m in found if 1 <= m <= 12)


def month_of(word: str) -> int | None:
    """The number of a month's name or its first three letters; None for any other word."""
    lower = word.lower().rstrip(".")
    if lower in _MONTHS:
        return _MONTHS[lower]
    if not word[0].isupper():
        return None
    return next((n for m, n in _MONTHS.items() if lower in (m[:3], m[:4])), None)


def dates(text: str) -> dict[tuple[int, int], str]:
    """Days of the year that a text names, as (month, day), each with its wording."""
    found: dict[tuple[int, int], str] = {}
    for match in _DATE.finditer(text):
        groups = {key: value for key, value in match.groupdict().items() if value}
        # The keys are m... for a month by name, n... for one by number, d... for the day.
        day = next(int(value) for key, value in groups.items() if key[0] == "d")
        month = next(
            month_of(value) if key[0] == "m" else int(value)
            for key, value in groups.items()
            if key[0] in "mn"
        )
        if month and 1 <= month <= 12 and 1 <= day <= 31:
            found[month, day] = match.group()
    return found


def bare_days(text: str) -> frozenset[int]:
    """Days that a text names without their month: the 14th, 14일."""
    found = re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)\b|(?<!월 )(?<!월)\b(\d{1,2})일", text)
    return frozenset(int(a or b) for a, b in found)


_MONTH_NAME = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    rf"\b(?P<m1>{_MONTH_NAME})\s(?:the\s)?(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<m2>{_MONTH_NAME})"
    r"|(?P<n1>\d{1,2})\s?월\s?(?P<d3>\d{1,2})\s?일|\d{4}[-./]\s?(?P<n2>\d{1,2})[-./]\s?(?P<d4>\d{1,2})"
    r"|\b(?P<n3>\d{1,2})/(?P<d5>\d{1,2})\b",
    re.IGNORECASE,
)
_MONTH_FIGURE = re.compile(
    r"(\d{1,2})\s?월|\d{4}[-./]\s?(\d{1,2})[-./]|\b(\d{1,2})/\d{1,2}\b|\b\d{1,2}[/.](\d{1,2})\b"
)
_FEW = {
    "1": r"\b(?:one|an?|single|first|once)\b|한|하나|첫",
    "2": r"\b(?:two|both|pair|couple|second|twice)\b|두|둘",
    "15": r"\bquarter past\b",
    "30": r"\d\s?시\s?반|[한두세네섯곱덟홉열]\s?시\s?반|\bhalf past\b",
    "45": r"\bquarter to\b",
}


def _digit_forms(text: str, match: re.Match[str]) -> frozenset[str]:
    digits = match.group().replace(",", "")
    if len(digits) > _LONG:  # an identifier rather than an amount; a float would blur it
        return frozenset({digits.lstrip("0") or "0"})
    value = float(digits)
    forms = set(_scaled(value, text[match.end() : match.end() + 12]))
    afternoon = _AFTERNOON.match(text, match.end()) or _KOREAN_AFTERNOON.search(
        text, max(0, match.start() - 4), match.start()
    )
    if afternoon and value < 12:
        forms.add(_written(value + 12))
    if 12 < value < 24 and text[match.end() : match.end() + 1] in (":", "시"):
        forms.add(_written(value - 12))
    return frozenset(forms)


def _scaled(value: float, after: str) -> frozenset[str]:
    scale = SCALE.match(after)
    if scale is None:
        return frozenset({_written(value)})
    return frozenset({_written(value), _written(value * _SCALES[scale.group(1).lower()])})


def _english_value(match: re.Match[str]) -> float:
    if match["tens"]:
        unit = _ENGLISH_UNITS[match["unit"].lower()] if match["unit"] else 0
        return float(_ENGLISH_TENS[match["tens"].lower()] + unit)
    if match["small"]:
        return float(_ENGLISH_SMALL[match["small"].lower()])
    if match["dozen"]:
        return 12.0
    return float(_ENGLISH_UNITS.get(match["few"].lower(), 1))


def _written(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
