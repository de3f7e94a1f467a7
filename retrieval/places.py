"""The sentences of passages, with what in them a reply can be compared with. Knows no reply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from retrieval.calendar_words import calendar_in
from retrieval.sentences import split_sentences
from retrieval.types import Passage
from retrieval.values import Quantity, read_quantities
from retrieval.words import content_terms


class Labelled(Protocol):
    """A passage under the label that a prompt gives it."""

    @property
    def label(self) -> str: ...

    @property
    def passage(self) -> Passage: ...


@dataclass(frozen=True, slots=True)
class Place:
    """A sentence of a passage: [start, end) within the passage's text."""

    labelled: Labelled
    start: int
    end: int
    terms: frozenset[str]
    quantities: tuple[Quantity, ...]
    held: frozenset[str]
    """The terms, the numbers and units, and the months and days, by their keys."""
    around: tuple[int, int]
    """The same with the sentences before and after it."""

    @property
    def text(self) -> str:
        return self.labelled.passage.text[self.start : self.end]

    @property
    def surroundings(self) -> str:
        return self.labelled.passage.text[slice(*self.around)]


def places_in(passages: Sequence[Labelled]) -> list[Place]:
    return [place for labelled in passages for place in _places_of(labelled)]


def _places_of(labelled: Labelled) -> list[Place]:
    text = labelled.passage.text
    spans = split_sentences(text)
    places = []
    for number, (start, end) in enumerate(spans):
        around = spans[max(0, number - 1)][0], spans[min(number + 1, len(spans) - 1)][1]
        sentence = text[start:end]
        terms = frozenset(content_terms(sentence))
        quantities = tuple(read_quantities(sentence))
        held = _held(terms, quantities) | calendar_in(sentence)
        places.append(Place(labelled, start, end, terms, quantities, held, around))
    return places


def pairs_of(places: Sequence[Place]) -> list[Place]:
    return [
        Place(
            first.labelled,
            first.start,
            second.end,
            first.terms | second.terms,
            first.quantities + second.quantities,
            first.held | second.held,
            (first.around[0], second.around[1]),
        )
        for first, second in pairwise(places)
        if first.labelled is second.labelled
    ]


def known_of(passage: Passage) -> frozenset[str]:
    """What a passage holds, with its document's name and its heading."""
    whole = f"{passage.document}\n{passage.context}\n{passage.text}"
    return _held(content_terms(whole), read_quantities(whole)) | calendar_in(whole)


def _held(terms: Iterable[str], quantities: Iterable[Quantity]) -> frozenset[str]:
    # Figures are held as the numbers that they are part of: 3 million is no 3.
    words = (term for term in terms if not term.isdigit())
    return frozenset(words).union(*(quantity.held for quantity in quantities))
