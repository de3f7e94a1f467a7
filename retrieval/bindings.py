"""Which thing of a sentence a number belongs to, where there are several of both ("40 in May and
75 in June"). Pure; knows no document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from retrieval.statements import numbers_in, word_terms

_CLAUSE_END = re.compile(
    r"[;\n|]|[,:.](?!\d)|\b(?:and|but|while|whereas|or|versus)\b|(?<=[가-힣][고며만])\s"
)
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_EDGE, _NUMBER = "^", "#"
MAX_CLAUSES = 12
"""Of longer lists it is not asked which number is whose."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word with what stands before and after it in its clause."""

    terms: frozenset[str]
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Clause:
    numbers: frozenset[str]
    words: tuple[_Word, ...]


def swaps_a_number(statement: str, numbers: Set[str], source: str) -> bool:
    """Whether the source has one of these numbers of the statement for another thing only.

    Two words are of one kind if they stand in the same place of two clauses ("in May", "in June";
    "40 apples", "75 pears"). A number is swapped when the statement has the word of the other
    clause, and neither the word of the number's own clause nor the other clause's number.
    """
    clauses = _clauses(source) if numbers else []
    if not 2 <= len(clauses) <= MAX_CLAUSES:
        return False
    said = frozenset(t for word in _words(_TOKEN.findall(statement)) for t in word.terms)
    for number in numbers:
        own = [clause for clause in clauses if number in clause.numbers]
        others = [c for c in clauses if c.numbers.isdisjoint(numbers)]
        if len(own) == 1 and any(_names_the_other(said, own[0], other) for other in others):
            return True
    return False


def _names_the_other(said: frozenset[str], own: _Clause, other: _Clause) -> bool:
    own_terms = frozenset(t for word in own.words for t in word.terms)
    other_terms = frozenset(t for word in other.words for t in word.terms)
    return any(
        a.terms <= said
        and said.isdisjoint(b.terms)
        and own_terms.isdisjoint(a.terms)
        and other_terms.isdisjoint(b.terms)
        for a in other.words
        for b in own.words
        if a.before == b.before or a.after == b.after != _EDGE
    )


def _clauses(source: str) -> list[_Clause]:
    """The clauses with numbers; what stands before one without any belongs to it."""
    cuts = [match.span() for match in _CLAUSE_END.finditer(source)]
    edges = [(0, 0), *cuts, (len(source), len(source))]
    parts = [source[a[1] : b[0]] for a, b in pairwise(edges)]
    joined: list[str] = []
    waiting = ""
    for part in parts:
        waiting += f" {part}"
        if numbers_in(part):
            joined.append(waiting)
            waiting = ""
    if joined:
        joined[-1] += waiting
    return [_clause(part) for part in joined]


def _clause(text: str) -> _Clause:
    tokens = _TOKEN.findall(text)
    return _Clause(frozenset(numbers_in(text)), tuple(_words(tokens)))


def _words(tokens: Sequence[str]) -> Iterator[_Word]:
    kinds = [_EDGE, *(_NUMBER if t[0].isdecimal() else t.lower() for t in tokens), _EDGE]
    for at, token in enumerate(tokens, start=1):
        if terms := _terms(token, first=at == 1):
            yield _Word(terms, kinds[at - 1], kinds[at + 1])


def _terms(token: str, *, first: bool) -> frozenset[str]:
    if token[0].isdecimal():
        return frozenset()
    # May is a month, and Will a person.
    name = {token.lower()} if token[0].isupper() and not first else set()
    return frozenset(word_terms(token) or name)
