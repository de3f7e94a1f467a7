"""A reply back to its sources, by program: words, numbers and names. Knows no model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from retrieval.bindings import another_row, swaps_a_number, swaps_in_short
from retrieval.dates import another_date
from retrieval.persons import another_person, unknown_person
from retrieval.places import Labelled, Place, known_of, pairs_of, places_in
from retrieval.polarity import contradicts
from retrieval.sentences import split_sentences
from retrieval.statements import Statement, names_in, read_statement
from retrieval.subjects import another_subject
from retrieval.types import Citation, Passage
from retrieval.values import clash, miscounts, numbers_in
from retrieval.words import content_terms

MIN_SUPPORTED = 0.6
"""Share of a statement's own words that its passage must hold."""
SPECIFIC_WEIGHT, QUESTION_WEIGHT = 3.0, 0.4
"""Where a statement stands is told by its numbers and names first; the words of the question help
to choose between places that hold the same answer."""
MIN_QUESTION_SHARE = 0.2
PAIR_GAIN = 1.5
"""Two sentences are cited in place of one only if they hold clearly more of the statement."""
TITLE_FACTOR = 0.5
"""A title has many of a question's words and says no more than what the document is about."""
MAX_TITLE_WORDS = 14

_HEADING = re.compile(r"^\s*#{1,6}\s")


def align(
    reply: str, passages: Sequence[Labelled], question: str = ""
) -> tuple[tuple[Citation, ...], tuple[str, ...]]:
    """Citations for the statements of a reply, and the statements that no passage supports.

    A statement is supported by a passage that holds all its numbers and names and most of its own
    words; it is cited to the sentence (or two) of that passage where they stand. What only frames
    an answer ("According to the document"), repeats the question or asks one is neither, unless it
    says the contrary of its source.
    """
    places = places_in(passages)
    known = [known_of(labelled.passage) for labelled in passages]
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
            p
            for p, held in zip(passages, known, strict=True)
            if _supports(held, statement) and not unknown_person(sentence, _whole(p.passage))
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
    found = places_in(passages)
    # A heading names what the sentences below it say; alone it answers nothing.
    places = [place for place in found if not _is_heading(place)] or found
    weights = _weights(terms, places)
    ranks = {labelled.label: rank for rank, labelled in enumerate(passages)}
    best, best_score = None, 0.0
    for place in places:
        shared = sum(weights[term] for term in terms & place.terms)
        shared *= TITLE_FACTOR if _is_title(place) else 1.0
        score = shared / (1.0 + 0.02 * ranks[place.labelled.label])
        if score > best_score:
            best, best_score = place, score
    total = sum(weights.values())
    return _citation(best) if best and best_score >= MIN_QUESTION_SHARE * total else None


def _supports(known: frozenset[str], statement: Statement) -> bool:
    if not statement.numbers | statement.names | statement.days <= known:
        return False
    held = sum(_holds(known, word) for word in statement.words)
    return held >= MIN_SUPPORTED * len(statement.words)


def _whole(passage: Passage) -> str:
    return f"{passage.document}\n{passage.context}\n{passage.text}"


def _holds(known: Iterable[str], word: frozenset[str]) -> bool:
    """Whether most of a word is there: a Hangul word is several pairs, another a single term."""
    return 2 * len(word.intersection(known)) > len(word)


def _contradicts(sentence: str, statement: Statement, place: Place) -> bool:
    """Whether the place says the contrary ("dogs are allowed", "dogs are not allowed"), or a
    number is another thing's there, or has another unit.

    A bare answer ("It is 24.") says neither; a long source may deny something else.
    """
    if sentence in place.text:
        return False
    if (
        clash(statement.quantities, place.quantities)
        or miscounts(statement.quantities, place.quantities)
        or swaps_a_number(sentence, statement.numbers, place.text)
    ):
        return True
    whole, named = place.labelled.passage.text, statement.names | statement.days
    if (
        another_row(sentence, place.text, whole)
        or another_date(sentence, place.text)
        or another_subject(sentence, whole)
        or another_person(sentence, place.text, _whole(place.labelled.passage))
        or swaps_in_short(sentence, statement.numbers, place.surroundings, numbers_in)
        or swaps_in_short(sentence, named, place.surroundings, names_in)
    ):
        return True
    close = len(place.terms) <= 3 * max(len(statement.whole), 1) + 4
    return close and contradicts(sentence, statement.whole, place.text)


def _denies_what_is_known(sentence: str, statement: Statement, places: Sequence[Place]) -> bool:
    """Whether a sentence in the question's words says the contrary of where most of them stand."""
    if not (places and statement.whole):
        return False
    held = [sum(_holds(place.terms, word) for word in statement.whole) for place in places]
    place = places[held.index(max(held))]
    enough = max(held) >= MIN_SUPPORTED * len(statement.whole)
    return enough and _contradicts(sentence, statement, place)


def _best_place(statement: Statement, places: Sequence[Place], asked: set[str]) -> Place | None:
    """The sentence that holds most of the statement, or two neighbours that hold clearly more."""
    single, score = _best(statement, places, asked)
    double, double_score = _best(statement, pairs_of(places), asked)
    return double if double_score >= score + PAIR_GAIN else single


def _best(
    statement: Statement, places: Sequence[Place], asked: set[str]
) -> tuple[Place | None, float]:
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


def _is_heading(place: Place) -> bool:
    text = place.text
    return bool(_HEADING.match(text)) or (len(text.split()) <= 4 and text[-1:].isalnum())


def _is_title(place: Place) -> bool:
    """Whether it is the first line of a document, and reads as its name."""
    passage, text = place.labelled.passage, place.text
    is_first = passage.start + place.start == 0 and place.end < len(passage.text.rstrip())
    is_short = len(text.split()) <= MAX_TITLE_WORDS and text[-1:].isalnum()
    return is_first and is_short and not re.search(r"[:|\t]", text)


def _weights(terms: set[str], places: Sequence[Place]) -> dict[str, float]:
    """Terms that stand in few sentences say more; of a handful of sentences none is common."""
    counts = {term: sum(term in place.terms for place in places) for term in terms}
    return {term: 1.0 / (1.0 + 4 * counts[term] / max(len(places), 8)) for term in terms}


def _citation(place: Place) -> Citation:
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
