"""Which of several values of a line another line means, by the words beside it. Pure.

Knows lines of text only: no kinds of values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.words import STOP_TERMS, lexical_terms

_CLAUSE = re.compile(r"[;:,]\s|\s(?:and|but|while)\s|(?<=[고며서])\s|(?<=는데)\s|(?<=지만)\s")
_FRONT = re.compile(r"(?<![가-힣\d])[가-힣]{2}")


def told_alike(values: Sequence[str], line: str, old: str) -> str:
    """The one whose clause in `old` has most words of the line, the first of equals: whose
    birthday it is, where the old line tells of two."""
    if len(values) == 1:
        return values[0]
    words = _words(line)
    clauses = {v: next((c for c in _CLAUSE.split(old) if v in c), "") for v in values}
    return max(values, key=lambda value: len(words & _words(clauses[value])))


def _words(text: str) -> set[str]:
    """Stems; of Korean words only the front, as endings differ."""
    terms = lexical_terms(re.sub(r"[가-힣]+", " ", text))
    told = {term for term in terms if term not in STOP_TERMS and not term[0].isdigit()}
    return told | set(_FRONT.findall(text))
