"""Whether the figures and dates of a summary stand where its source has them. Knows texts only.

A figure out of another matter is told by the words around it: those of its clause stand in the
source with another figure of its kind, and not where the figure itself stands. What may go on with
the other matter without naming it, as "it is 92 now", counts for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from chatbot.gate_binding import said
from chatbot.line_values import values
from chatbot.subjects import subject
from retrieval.sentences import sentences

_CLAUSE = re.compile(
    r"[;:]\s|,\s|\s(?:and|but|while|whereas)\s|(?<=[고며])\s|(?<=지만)\s|(?<=는데)\s"
)
_KINDS = ("date", "time", "figure ")
_FORMAL = frozenset(
    ("come", "go", "get", "take", "bring", "stay", "wait", "expect", "plan", "book")
)
"""Verbs of every subject."""
_LABEL = re.compile(
    r"[가-힣]{2,}[은는]\s(?:약 |총 )?\Z"
    r"|\b(?!it\b|that\b|this\b|which\b|price\b|total\b|now\b)[a-z]{3,} (?:is|are|was|costs?|for|of)"
    r" (?:about |only )?[$€£]?\Z"
)
"""What a figure is of, right before it."""
_CHANGES = re.compile(
    r"\b(?:now|instead|actually|sorry|changed?|moved|raised|lowered|went (?:up|down))\b"
    r"|바뀌|바꾸|바꿨|변경|올랐|올라|내렸|내려|깎|줄었|늘었|사실|아니라|대신|이제",
    re.IGNORECASE,
)
_CLEARLY = 3
"""Words of a clause that one other place must hold if the own one holds one of them."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A sentence of the source, where it is, and what stands around it."""

    at: int
    text: str
    keys: frozenset[tuple[str, str]]
    about: frozenset[str]
    around: frozenset[str]


def out_of_place(text: str, source: str) -> Iterator[str]:
    """Figures of a kind and unit that belong to another matter of the source."""
    for sentence in said(text):
        for clause in _CLAUSE.split(sentence):
            yield from _strangers(clause, source)


def _strangers(clause: str, source: str) -> Iterator[str]:
    found = [v for v in values(clause) if v.kind.startswith(_KINDS)]
    if not found:
        return
    terms, places = _about(clause), _places(source)
    kinds = [v.kind for v in found]
    for value in found:
        if kinds.count(value.kind) > 1:
            continue  # a list of figures, whose words may be those of any
        own = [p for p in places if (value.kind, value.key) in p.keys]
        others = [
            p for p in places if p not in own and any(kind == value.kind for kind, _ in p.keys)
        ]
        here = max((len(terms & p.around) for p in own), default=_CLEARLY)
        there = max((len(terms & p.about) for p in others), default=0)
        first = min((p.at for p in others if len(terms & p.about) == there), default=0)
        apart = all(p.at < first or _is_of_its_own(p, value.text) for p in own)
        if apart and ((here == 0 and there >= 1) or (here == 1 and there >= _CLEARLY)):
            yield value.text


def _is_of_its_own(place: _Place, figure: str) -> bool:
    """Whether a sentence says itself what its figure is of, and takes no other one back."""
    before = place.text.partition(figure)[0]
    return bool(_LABEL.search(before)) and not _CHANGES.search(place.text)


@lru_cache(maxsize=8)
def _places(source: str) -> tuple[_Place, ...]:
    return tuple(_each_place(source))


def _each_place(source: str) -> Iterator[_Place]:
    lines = [line for line in source.splitlines() if line.strip()]
    # Facts are lines of the turns once more.
    lines = [s for n, s in enumerate(lines) if not any(s in earlier for earlier in lines[:n])]
    about = [_about(line) for line in lines]
    for at, line in enumerate(lines):
        # What is asked and answered is one matter: the whole of the next and the last message.
        around = frozenset().union(*about[max(0, at - 1) : at + 2])
        parts = [part for part in sentences(line) if part.strip()]
        for n, part in enumerate(parts):
            keys = frozenset((v.kind, v.key) for v in values(part))
            if keys:
                near = _about(" ".join(parts[max(0, n - 1) : n + 1]))
                yield _Place(at, part, keys, near, around)


def _about(text: str) -> frozenset[str]:
    names = frozenset(v.key for v in values(text) if v.kind == "name")
    return (subject(text) | names) - _FORMAL
