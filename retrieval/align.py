"""A reply back to its sources, by program: words, numbers and names. Knows no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from retrieval.sentences import split_sentences
from retrieval.types import Citation, Passage
from retrieval.words import content_terms, is_glued

MIN_COVERAGE = 0.5
"""Share of a statement's content terms that its source must hold."""
MIN_QUESTION_COVERAGE = 0.2
_LABEL = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_NAME = re.compile(r"(?<=[a-z,;:)] )[A-Z][\w’'-]+")


class Labelled(Protocol):
    """A passage under the label that a prompt gives it."""

    @property
    def label(self) -> str: ...

    @property
    def passage(self) -> Passage: ...


@dataclass(frozen=True, slots=True)
class _Place:
    """A sentence of a passage: [start, end) within the passage's text."""

    labelled: Labelled
    start: int
    end: int
    terms: frozenset[str]

    @property
    def text(self) -> str:
        return self.labelled.passage.text[self.start : self.end]


def align(reply: str, passages: Sequence[Labelled]) -> tuple[tuple[Citation, ...], tuple[str, ...]]:
    """Citations for the statements of a reply, and the statements that no passage supports.

    A statement is supported by a sentence, or two neighbours, that hold most of its content
    terms; all its numbers and names must stand in that passage. Sentences that state nothing
    (greetings, a few function words) are neither cited nor marked.
    """
    places = _places(passages)
    citations: dict[tuple[str, int], Citation] = {}
    unsupported: list[str] = []
    for start, end in split_sentences(reply):
        statement = _LABEL.sub("", reply[start:end]).strip()
        terms = content_terms(statement)
        if len(terms) < 2 and not _NUMBER.search(statement):
            continue
        place = _best_place(terms, places)
        if place is None or not _holds(statement, terms, place):
            unsupported.append(reply[start:end].strip())
            continue
        key = (place.labelled.passage.document_id, place.labelled.passage.start + place.start)
        citations.setdefault(key, _citation(place))
    return tuple(citations.values()), tuple(unsupported)


def best_sentence(question: str, passages: Sequence[Labelled]) -> Citation | None:
    """The sentence of the passages that matches the question best, word for word.

    None when no sentence shares a fair part of its content terms. Passages come best first, so
    that of equal sentences the one in the better passage is taken.
    """
    terms = content_terms(question)
    if not terms:
        return None
    places = _places(passages)
    weights = _weights(terms, places)
    ranks = {labelled.label: rank for rank, labelled in enumerate(passages)}
    best, best_score = None, 0.0
    for place in places:
        shared = sum(weights[term] for term in terms & place.terms)
        score = shared / (1.0 + 0.02 * ranks[place.labelled.label])
        if score > best_score:
            best, best_score = place, score
    total = sum(weights.values())
    return _citation(best) if best and best_score >= MIN_QUESTION_COVERAGE * total else None


def _places(passages: Sequence[Labelled]) -> list[_Place]:
    return [
        _Place(labelled, start, end, frozenset(content_terms(labelled.passage.text[start:end])))
        for labelled in passages
        for start, end in split_sentences(labelled.passage.text)
    ]


def _weights(terms: set[str], places: Sequence[_Place]) -> dict[str, float]:
    """Terms that stand in few sentences say more."""
    counts = {term: sum(term in place.terms for place in places) for term in terms}
    return {term: 1.0 / (1.0 + counts[term] / max(len(places), 1) * 4) for term in terms}


def _best_place(terms: set[str], places: Sequence[_Place]) -> _Place | None:
    best, best_score = None, 0.0
    for place in [*places, *_pairs(places)]:
        # A pair of sentences has to be clearly better than either alone.
        score = len(terms & place.terms) - 0.5 * (len(place.terms) > 60)
        if score > best_score:
            best, best_score = place, score
    return best


def _pairs(places: Sequence[_Place]) -> list[_Place]:
    pairs = []
    for first, second in pairwise(places):
        if first.labelled.label == second.labelled.label:
            terms = first.terms | second.terms
            pairs.append(_Place(first.labelled, first.start, second.end, terms))
    return pairs


def _holds(statement: str, terms: set[str], place: _Place) -> bool:
    passage = place.labelled.passage
    whole = f"{passage.context}\n{passage.text}"
    if terms and len(terms & place.terms) / len(terms) < MIN_COVERAGE:
        return False
    if not _numbers(statement) <= _numbers(whole):
        return False
    known = content_terms(whole)
    return all(content_terms(name) <= known for name in _NAME.findall(statement)) and (
        not _missing_words(statement, known)
    )


def _missing_words(statement: str, known: set[str]) -> bool:
    """Whether a whole Hangul word of the statement has no part in the passage."""
    for word in re.findall(r"[가-힣]{3,}", statement):
        pairs = [term for term in content_terms(word) if len(term) == 2 and is_glued(term)]
        if pairs and not any(pair in known for pair in pairs):
            return True
    return False


def _numbers(text: str) -> set[str]:
    return {number.replace(",", "") for number in _NUMBER.findall(text)}


def _citation(place: _Place) -> Citation:
    passage = place.labelled.passage
    return Citation(
        label=place.labelled.label,
        document=passage.document,
        document_id=passage.document_id,
        page=passage.page,
        start=passage.start + place.start,
        end=passage.start + place.end,
        quote=place.text,
        page_end=passage.page_end,
    )
