"""Whether a statement gives the one of two dates of a sentence to what happens on the other. Pure;
knows no calendar beyond the names of its parts."""

from __future__ import annotations

import re

from retrieval.calendar_words import MONTH_NAME
from retrieval.statements import word_terms

_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    r"\d{4}([-./]) ?\d{1,2}\1 ?\d{1,2}"
    r"|(?:\d{4}년 ?)?\d{1,2}월(?: ?\d{1,2}일)?|\d{4}년"
    rf"|(?:{_DAY} )?(?:{MONTH_NAME})\b(?: {_DAY}\b)?(?:,? \d{{4}})?"
    r"|\b(?:1[5-9]|20)\d\d\b"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|[월화수목금토일]요일"
)
_WORD = re.compile(r"[^\W\d_]+")
_LAST_CUT = re.compile(r".*(?:[,;:]|\b(?:and|but|while|whereas|or)\b)", re.DOTALL)
_CONNECTED = re.compile(r"[가-힣](?:고|며|여|해|서|지만|으나|는데|후)[,\s]*$")


def another_date(statement: str, sentence: str) -> bool:
    """Whether a sentence with two dates has the words of the statement beside the other one.

    In English a date mostly ends what is said of it, in Korean it begins that. Only what stands
    so, and whose words all stand beside the other date, is marked.
    """
    dates = list(_DATE.finditer(sentence))
    stated = {_plain(match[0]) for match in _DATE.finditer(statement)}
    if len(dates) != 2 or len(stated) != 1:
        return False
    first, second = (_plain(match[0]) for match in dates)
    if first == second or not stated <= {first, second}:
        return False
    parts = (
        sentence[: dates[0].start()],
        sentence[dates[0].end() : dates[1].start()],
        sentence[dates[1].end() :],
    )
    said = _words(_DATE.sub(" ", statement))
    if re.search("[가-힣]", sentence):
        return _in_korean(said, parts, is_first=stated == {first})
    return stated == {first} and _in_english(said, parts)


def _in_english(said: set[str], parts: tuple[str, str, str]) -> bool:
    """Of the first date is said what only stands before the second, at the sentence's end."""
    before, between, after = parts
    if _words(after) or not _words(_LAST_CUT.sub("", before)):
        return False  # the date does not end its clause
    near = _words(_LAST_CUT.sub("", between))
    only = said & near - _words(before)
    far = said & _words(between) - near
    return bool(only) and not far and not said & _words(before) - _words(between) - _subject(before)


def _in_korean(said: set[str], parts: tuple[str, str, str], *, is_first: bool) -> bool:
    """Each date has its own predicate behind it, and the words are those of the other's."""
    _, between, after = (_words(part) for part in parts)
    if not _CONNECTED.search(parts[1]):
        return False
    mine, other = (between, after) if is_first else (after, between)
    return bool(said & other - mine) and not said & mine - other


def _subject(before: str) -> set[str]:
    """The words of the clause's first half: what both dates may be said of."""
    words = _WORD.findall(before)
    return _words(" ".join(words[: max(1, len(words) - 2)]))


def _words(text: str) -> set[str]:
    return {term for word in _WORD.findall(text) for term in word_terms(word)}


def _plain(date: str) -> str:
    return re.sub(r"[\s,]+", " ", date.casefold()).strip()
