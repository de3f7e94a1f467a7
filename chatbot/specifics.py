"""The figures and names of a text, for asking whether it holds those of another. Knows no chat."""

from __future__ import annotations

import re

from chatbot.figures import (
    MEASURES,
    MONEY,
    Number,
    bare_days,
    dates,
    month_of,
    months_in,
    number_forms,
    numbers,
)
from chatbot.language import Language
from chatbot.proper_names import english_names, identifiers, korean_names, latin_words
from chatbot.units import RIVALS
from retrieval.words import lexical_terms

WEEKDAY = re.compile("([월화수목금토일])요일")
_DEMONYM = re.compile(r"(?:ish|ese|ians?|ans?|ic|is?|ns?)$")


class Specifics:
    """The numbers and words of a text, for looking up those of another."""

    def __init__(self, text: str) -> None:
        self.numbers = number_forms(text)
        self._months = months_in(text)
        self._measured = numbers(text, list_marks=True)
        self._dates, self._days = dates(text), bare_days(text)
        self._folded = text.casefold()
        self._terms = frozenset(lexical_terms(text))
        self._words = frozenset(re.findall(r"[^\W\d_]+", self._folded))

    def has_other(self, number: Number) -> bool:
        """Whether the text has this unit with other figures, and this figure of other things.

        Of money, the text need not have the unit: 900 euros are no dollars.
        """
        if number.unit not in MEASURES:
            return False
        same = [n for n in self._measured if n.forms & number.forms]
        if number.unit in MONEY and same and all(n.unit in MONEY for n in same):
            return all(n.unit != number.unit for n in same)
        rivals = RIVALS.get(number.unit, frozenset())
        if any(n.unit in rivals for n in same):  # 12 kg are no 12 pounds
            return all(n.unit not in ("", number.unit) for n in same)
        if all(n.unit != number.unit for n in self._measured):
            return False
        return bool(same) and all(n.unit not in ("", number.unit) for n in same)

    def has_weekday(self, day: str) -> bool:
        """Whether a Korean text names this weekday, or names none at all."""
        shortened = re.search(
            rf"(?<![가-힣])[월화수목금토일]*{day}[월화수목금토일]*(?![가-힣])", self._folded
        )
        return f"{day}요일" in self._folded or bool(shortened) or "요일" not in self._folded

    def has_date(self, date: tuple[int, int]) -> bool:
        """Whether the text names this (month, day), or this day without a month."""
        return date in self._dates or date[1] in self._days

    def has(self, word: str) -> bool:
        """Whether the text holds a name, also in another form of the word."""
        folded = word.casefold()
        if folded in self._words or (folded in self._folded and not folded.isascii()):
            return True
        if (month := month_of(word)) is not None:
            return month in self._months
        if any(c.isdigit() or c in "-&.+#" for c in word) and folded in self._folded:
            return True
        parts = re.findall(r"[^\W\d_]+", folded)
        if len(parts) > 1:
            return all(part in self._words for part in parts)
        return set(lexical_terms(word)) <= self._terms or self._is_derived(folded)

    def _is_derived(self, folded: str) -> bool:
        """Italian stands for Italy."""
        stem = _DEMONYM.sub("", folded)
        return len(stem) >= 4 and any(word.startswith(stem) for word in self._words)


def names_in(text: str, language: Language) -> list[str]:
    """All words of a text that name somebody or something, by the customs of its language."""
    found = identifiers(text) + korean_names(text)
    if language == "ko":
        return found + [word for word in latin_words(text) if word.casefold() not in ("ai", "ok")]
    return found + english_names(text) + re.findall(r"[가-힣]{2,}", text)
