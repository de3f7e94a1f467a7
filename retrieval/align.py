"""A reply back to its sources, by program: words, numbers and names. Knows no model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from retrieval.bindings import another_row, swaps_a_number, swaps_in_short
from retrieval.calendar_words import calendar_in
from retrieval.polarity import contradicts
from retrieval.sentences import split_sentences
from retrieval.statements import Statement, names_in, read_statement
from retrieval.types import Citation, Passage
from retrieval.values import Quantity, clash, numbers_in, read_quantities
from retrieval.words import content_terms

MIN_SUPPORTED = 0.6
"""Share of a statement's own words that its passage must hold."""
SPECIFIC_WEIGHT, QUESTION_WEIGHT = 3.0, 0.4
"""Where a statement stands is told by its numbers and names first; the words of the question help
to choose between places that hold the same answer."""
MIN_QUESTION_SHARE = 0.2
PAIR_GAIN = 1.5
"""Two sentences are cited in place of one only if they hold clearly more of the statement."""

_HEADING = re.compile(r"^\s*#{1,6}\s")


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


def align(
    reply: str, passages: Sequence[Labelled], question: str = ""
) -> tuple[tuple[Citation, ...], tuple[str, ...]]:
    """Citations for the statements of a reply, and the statements that no passage supports.

    A statement is supported by a passage that holds all its numbers and names and most of its own
    words; it is cited to the sentence (or two) of that passage where they stand. What only frames
    an answer ("According to the document"), repeats the question or asks one is neither, unless it
    says the contrary of its source.
    """
    places = _places(passages)
    known = [_known(labelled.passage) for labelled in passages]
    asked = content_terms(question) | numbers_in(question)
    citations: dict[tuple[str, int, int], Citation] = {}
    unsupported: list[str] = []
    for start, end in split_sentences(reply):
        sentence = reply[start:end].strip()
        statement = read_statement(sentence, question, asked)
        if sentence.endswith(("?", "？")):
            continue
        if not statement.says_something:
            if _denies_what_is_known(sentence, statement, places):
                unsupported.append(sentence)
            continue
        supporting = [
            p for p, held in zip(passages, known, strict=True) if _supports(held, statement)
        ]
        place = _best_place(statement, [p for p in places if p.labelled in supporting], asked)
        if place is None or _contradicts(sentence, statement, place):
            unsupported.append(sentence)
        else:
            passage = place.labelled.passage
            key = (passage.document_id, passage.start + place.start, passage.start + place.end)
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
    found = _places(passages)
    # A heading names what the sentences below it say; alone it answers nothing.
    places = [place for place in found if not _is_heading(place)] or found
    weights = _weights(terms, places)
    ranks = {labelled.label: rank for rank, labelled in enumerate(passages)}
    best, best_score = None, 0.0
    for place in places:
        shared = sum(weights[term] for term in terms & place.terms)
        score = shared / (1.0 + 0.02 * ranks[place.labelled.label])
        if score > best_score:
            best, best_score = place, score
    total = sum(weights.values())
    return _citation(best) if best and best_score >= MIN_QUESTION_SHARE * total else None


def _known(passage: Passage) -> frozenset[str]:
    """What a passage holds, with its document's name and its heading."""
    whole = f"{passage.document}\n{passage.context}\n{passage.text}"
    return _held(content_terms(whole), read_quantities(whole)) | calendar_in(whole)


def _held(terms: Iterable[str], quantities: Iterable[Quantity]) -> frozenset[str]:
    return frozenset(terms).union(*(quantity.held for quantity in quantities))


def _supports(known: frozenset[str], statement: Statement) -> bool:
    if not statement.numbers | statement.names | statement.days <= known:
        return False
    held = sum(_holds(known, word) for word in statement.words)
    return held >= MIN_SUPPORTED * len(statement.words)


def _holds(known: Iterable[str], word: frozenset[str]) -> bool:
    """Whether most of a word is there: a Hangul word is several pairs, another a single term."""
    return 2 * len(word.intersection(known)) > len(word)


def _contradicts(sentence: str, statement: Statement, place: _Place) -> bool:
    """Whether the place says the contrary ("dogs are allowed", "dogs are not allowed"), or a
    number is another thing's there, or has another unit.

    A bare answer ("It is 24.") says neither; a long source may deny something else.
    """
    if sentence in place.text:
        return False
    if clash(statement.quantities, place.quantities) or swaps_a_number(
        sentence, statement.numbers, place.text
    ):
        return True
    whole, named = place.labelled.passage.text, statement.names | statement.days
    if (
        another_row(sentence, place.text, whole)
        or swaps_in_short(sentence, statement.numbers, place.surroundings, numbers_in)
        or swaps_in_short(sentence, named, place.surroundings, names_in)
    ):
        return True
    close = len(place.terms) <= 3 * max(len(statement.whole), 1) + 4
    return close and contradicts(sentence, statement.whole, place.text)


def _denies_what_is_known(sentence: str, statement: Statement, places: Sequence[_Place]) -> bool:
    """Whether a sentence in the question's words says the contrary of where most of them stand."""
    if not (places and statement.whole):
        return False
    held = [sum(_holds(place.terms, word) for word in statement.whole) for place in places]
    place = places[held.index(max(held))]
    enough = max(held) >= MIN_SUPPORTED * len(statement.whole)
    return enough and _contradicts(sentence, statement, place)


def _best_place(statement: Statement, places: Sequence[_Place], asked: set[str]) -> _Place | None:
    """The sentence that holds most of the statement, or two neighbours that hold clearly more."""
    single, score = _best(statement, places, asked)
    double, double_score = _best(statement, _pairs(places), asked)
    return double if double_score >= score + PAIR_GAIN else single


def _best(
    statement: Statement, places: Sequence[_Place], asked: set[str]
) -> tuple[_Place | None, float]:
    best, best_score = None, 0.0
    for place in places:
        exact = statement.names | statement.days
        if statement.numbers and not clash(statement.quantities, place.quantities):
            exact |= statement.numbers
        score = SPECIFIC_WEIGHT * len(exact & place.held)
        score += sum(_holds(place.held, word) for word in statement.words)
        if score > 0:
            score += QUESTION_WEIGHT * len(asked & place.terms)
        if score > best_score:
            best, best_score = place, score
    return best, best_score


def _places(passages: Sequence[Labelled]) -> list[_Place]:
    return [place for labelled in passages for place in _places_of(labelled)]


def _places_of(labelled: Labelled) -> list[_Place]:
    text = labelled.passage.text
    spans = split_sentences(text)
    places = []
    for number, (start, end) in enumerate(spans):
        around = spans[max(0, number - 1)][0], spans[min(number + 1, len(spans) - 1)][1]
        sentence = text[start:end]
        terms = frozenset(content_terms(sentence))
        quantities = tuple(read_quantities(sentence))
        held = _held(terms, quantities) | calendar_in(sentence)
        places.append(_Place(labelled, start, end, terms, quantities, held, around))
    return places


def _is_heading(place: _Place) -> bool:
    text = place.text
    return bool(_HEADING.match(text)) or (len(text.split()) <= 4 and text[-1:].isalnum())


def _pairs(places: Sequence[_Place]) -> list[_Place]:
    return [
        _Place(
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


def _weights(terms: set[str], places: Sequence[_Place]) -> dict[str, float]:
    """Terms that stand in few sentences say more; of a handful of sentences none is common."""
    counts = {term: sum(term in place.terms for place in places) for term in terms}
    return {term: 1.0 / (1.0 + 4 * counts[term] / max(len(places), 8)) for term in terms}


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
