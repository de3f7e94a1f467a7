"""Which thing of a sentence a number belongs to, where there are several of both ("40 in May and
75 in June"). Pure; knows no document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from retrieval.statements import word_terms
from retrieval.values import numbers_in

KeysIn = Callable[[str], Set[str]]
"""What of a text another one is compared by: its numbers, or its names."""

_CLAUSE_END = re.compile(
    r"[;\n|]|[,:.](?!\d)|\b(?:and|but|while|whereas|or|versus)\b|(?<=[가-힣][고며만])(?<![십백천]만)\s"
)
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_LABELLED = re.compile(r"([A-Z])[가-힣]")
"""A팀 is told from B팀 by its letter."""
_EDGE, _NUMBER = "^", "#"
SHORT_WORDS = 6
MAX_CLAUSES = 12
MAX_CHARS = 3000
"""Of longer lists and texts it is not asked which number is whose."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word with what stands before and after it in its clause."""

    terms: frozenset[str]
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Clause:
    keys: frozenset[str]
    words: tuple[_Word, ...]


def swaps_a_number(statement: str, numbers: Set[str], source: str) -> bool:
    """Whether the source has one of these numbers of the statement for another thing only.

    Two words are of one kind if they stand in the same place of two clauses ("in May", "in June";
    "40 apples", "75 pears"). A number is swapped when the statement has the word of the other
    clause, and neither the word of the number's own clause nor the other clause's number.
    """
    return bool(numbers) and _swapped(statement, numbers, _clauses(source, numbers_in), numbers_in)


def swaps_in_short(statement: str, keys: Set[str], source: str, keys_in: KeysIn) -> bool:
    """The same across sentences and for any keys, such as names, where both clauses are short.

    Long sentences that stand side by side speak of too many things to be compared so.
    """
    if not keys or len(list(_words(_TOKEN.findall(statement)))) > SHORT_WORDS + 2:
        return False
    clauses = _clauses(source, keys_in)
    if sum(len(clause.words) for clause in clauses) > 4 * SHORT_WORDS:
        return False
    clauses = [clause for clause in clauses if len(clause.words) <= SHORT_WORDS]
    return _swapped(statement, keys, clauses, keys_in)


def _swapped(statement: str, keys: Set[str], clauses: Sequence[_Clause], keys_in: KeysIn) -> bool:
    if not 2 <= len(clauses) <= MAX_CLAUSES:
        return False
    # Of several of them, each is compared with what is said of it.
    stated = _clauses(statement, keys_in)
    parts = [(keys & part.keys, _all_terms(part)) for part in stated if len(stated) > 1]
    said = frozenset(t for word in _words(_TOKEN.findall(statement)) for t in word.terms)
    return any(_swaps(some, terms, clauses) for some, terms in [*parts, (keys, said)])


def another_row(statement: str, row: str, table: str) -> bool:
    """Whether a row of a table stands for one that the statement does not name, but another of
    its rows is named by its first cell."""
    own = _first_cell(row)
    said = _named_by(statement)
    if not own or not said.isdisjoint(own):
        return False
    others = [_first_cell(line) for line in table.splitlines() if line.startswith("|")]
    return any(other and other <= said for other in others[1:])


def _first_cell(row: str) -> frozenset[str]:
    cells = row.strip().split("|")
    tokens = _TOKEN.findall(cells[1]) if len(cells) > 3 and not cells[0] else []
    return frozenset(t for token in tokens for t in _terms(token, first=False) or {token.lower()})


def _named_by(statement: str) -> frozenset[str]:
    tokens = [token for token in _TOKEN.findall(statement) if not token[0].isdecimal()]
    terms = {t for token in tokens for t in _terms(token, first=False)}
    # A single syllable with its particle.
    return frozenset(terms.union(t.lower() for t in tokens).union(t[:-1] for t in tokens))


def _all_terms(clause: _Clause) -> frozenset[str]:
    return frozenset(t for word in clause.words for t in word.terms)


def _swaps(keys: Set[str], said: frozenset[str], clauses: Sequence[_Clause]) -> bool:
    for key in keys:
        own = [clause for clause in clauses if key in clause.keys]
        others = [clause for clause in clauses if clause.keys.isdisjoint(keys)]
        if len(own) == 1 and any(_names_the_other(said, own[0], other) for other in others):
            return True
    return False


def _names_the_other(said: frozenset[str], own: _Clause, other: _Clause) -> bool:
    own_terms, other_terms = _all_terms(own), _all_terms(other)
    if len(own_terms & said) > len(other_terms & said):
        return False
    return any(
        a.terms <= said
        and said.isdisjoint(b.terms)
        and own_terms.isdisjoint(a.terms)
        and other_terms.isdisjoint(b.terms)
        for a in other.words
        for b in own.words
        if a.before == b.before or a.after == b.after != _EDGE
    )


def _clauses(source: str, keys_in: KeysIn) -> list[_Clause]:
    """The clauses with keys; what stands before one without any belongs to it."""
    if len(source) > MAX_CHARS:
        return []
    cuts = [match.span() for match in _CLAUSE_END.finditer(source)]
    edges = [(0, 0), *cuts, (len(source), len(source))]
    parts = [source[a[1] : b[0]] for a, b in pairwise(edges)]
    joined: list[str] = []
    waiting = ""
    for part in parts:
        waiting += f" {part}"
        if keys_in(part):
            joined.append(waiting)
            waiting = ""
    if joined:
        joined[-1] += waiting
    return [_clause(part, keys_in(part)) for part in joined]


def _clause(text: str, keys: Set[str]) -> _Clause:
    return _Clause(frozenset(keys), tuple(_words(_TOKEN.findall(text))))


def _words(tokens: Sequence[str]) -> Iterator[_Word]:
    kinds = [_EDGE, *(_NUMBER if t[0].isdecimal() else t.lower() for t in tokens), _EDGE]
    for at, token in enumerate(tokens, start=1):
        if terms := _terms(token, first=at == 1):
            yield _Word(terms, kinds[at - 1], kinds[at + 1])


def _terms(token: str, *, first: bool) -> frozenset[str]:
    if token[0].isdecimal():
        return frozenset()
    if label := _LABELLED.match(token):
        return frozenset({label[1].lower()})
    # May is a month, and Will a person.
    name = {token.lower()} if token[0].isupper() and not first else set()
    return frozenset(word_terms(token) or name)
