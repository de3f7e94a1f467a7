"""Scores of texts for a query's terms, and how two kinds of scores become one. Pure arithmetic.

The weights were chosen on XQuAD (English), KorQuAD 1.0 (Korean) and HotpotQA; see
`benchmarks/document_evidence.py`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise

from retrieval.words import STOP_TERMS, is_glued, lexical_runs

K1, B = 0.9, 0.75
"""BM25: how soon repeats stop to count, and how much length counts against a text."""
STOP_FACTOR = 0.5
"""Words of a question's form, such as `who`, seldom stand in the answer; they count half."""
ENDING_FACTOR = 0.3
"""The last pair of a Hangul word mostly is a particle or an ending with the syllable before it."""
LONG_WORD_POWER = 0.5
"""How far the pairs of a long Hangul word, mostly a name, share the worth of one word."""
SYLLABLE_FACTOR = 0.3
"""A Hangul syllable alone stands in many words that have nothing to do with each other."""
SENTENCE_FACTOR = 1.0
"""What the best single sentence adds: an answer holds many of the question's words at once."""
ADJACENT_FACTOR = 0.6
"""What two words add that stand side by side in the query and in the text: mostly names."""
GLUED_ADJACENT_FACTOR = 2.0
"""The same where one is of a glued script: its pairs also match inside of other words."""
HEAD_FACTOR = 1.0
"""What the first pair of such a word adds if a word of the text begins with it as well."""

MAX_LOOKED_FOR = 40
"""Up to so many terms of a query, a text is searched for each instead of taken apart."""


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query with what a match of each is worth, and neighbours among them.

    `heads` are the first pairs of its words in glued scripts.
    """

    weights: Mapping[str, float]
    adjacent: frozenset[tuple[str, str]] = frozenset()
    heads: frozenset[str] = frozenset()


def query_factors(query: str) -> dict[str, float]:
    """Each term of a query with its share of the full weight, in reading order."""
    factors: dict[str, float] = {}
    for run in lexical_runs(query):
        for number, term in enumerate(run, start=1):
            ending = is_glued(term) and len(run) > 3 and number == len(run)
            factor = ENDING_FACTOR if ending else 1.0
            factor *= STOP_FACTOR if term in STOP_TERMS else 1.0
            factors[term] = max(factor, factors.get(term, 0.0))
    return factors


def weigh(query: str, frequencies: Mapping[str, int], total: int) -> QueryTerms:
    """Weigh a query's terms: rare ones most, all positive also in the smallest collection.

    `frequencies` says in how many of `total` texts a term stands; terms in none are left out.
    """
    shares = _word_shares(query)
    weights = {
        term: factor
        * (SYLLABLE_FACTOR if _is_syllable(term) else shares.get(term, 1.0))
        * math.log(1 + (total - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        for term, factor in query_factors(query).items()
        if frequencies.get(term)
    }
    words = word_heads([term for run in lexical_runs(query) for term in run])
    return QueryTerms(
        weights,
        frozenset(pair for pair in pairwise(words) if all(t in weights for t in pair)),
        frozenset(w for w in words if len(w) == 2 and is_glued(w) and w in weights),
    )


def _word_shares(query: str) -> dict[str, float]:
    """What each pair of a glued script counts for, given how many its word has."""
    shares: dict[str, float] = {}
    for run in lexical_runs(query):
        n_pairs = len(run) // 2 - 1  # but the last one, which mostly is an ending
        for term in run:
            if len(term) == 2 and is_glued(term):
                share = max(1, n_pairs) ** -LONG_WORD_POWER
                shares[term] = max(share, shares.get(term, 0.0))
    return shares


def word_heads(terms: Sequence[str]) -> list[str]:
    """One term for each word, in order: of a run in a glued script its first pair, or its only
    character; other words whole.

    `terms` are those of `lexical_terms`: all characters of a run come before its pairs, and a run
    has one character more than pairs. So of the characters before some pairs, the last ones are
    of the run of these pairs, and those before are runs of one character.
    """
    heads: list[str] = []
    characters: list[str] = []
    pairs: list[str] = []
    for term in terms:
        if len(term) == 2 and characters and is_glued(term):
            pairs.append(term)
            continue
        if pairs or not is_glued(term):
            heads += _heads_of(characters, pairs)
            characters, pairs = [], []
        if is_glued(term):
            characters.append(term)
        else:
            heads.append(term)
    return heads + _heads_of(characters, pairs)


def _heads_of(characters: Sequence[str], pairs: Sequence[str]) -> list[str]:
    if not pairs:
        return list(characters)
    return [*characters[: max(0, len(characters) - len(pairs) - 1)], pairs[0]]


@dataclass(frozen=True, slots=True)
class TextMatch:
    """What a text has of a query's terms: the same whatever it is compared with."""

    n_terms: int
    counts: Mapping[str, int]
    """How often each term of the query stands in it."""
    together: float
    """What its best sentence adds, and neighbours kept together."""


def score_matches(query: QueryTerms, matches: Sequence[TextMatch]) -> list[float]:
    """BM25 of each text, with lengths compared among these texts, plus its best sentence, plus
    neighbours kept together."""
    mean = sum(match.n_terms for match in matches) / max(1, len(matches)) or 1.0
    return [
        _bm25(query.weights, match.counts, match.n_terms / mean) + match.together
        for match in matches
    ]


def match_text(query: QueryTerms, lines: str) -> TextMatch:
    """Look for the query's terms in a text: its sentences in lines, their terms between spaces."""
    sentences = lines.split("\n")
    find = _by_term if len(query.weights) <= MAX_LOOKED_FOR else _by_sentence
    found = find(query.weights, sentences)
    best = max((sentence_score(query, terms) for _, terms in found), default=0.0)
    return TextMatch(
        lines.count(" ") + sum(map(bool, sentences)),
        Counter(term for _, terms in found for term in terms),
        SENTENCE_FACTOR * best + _kept_together(query, lines, found),
    )


Found = list[tuple[str, list[str]]]
"""Sentences with terms of the query, and these terms in reading order, repeats included."""


def _by_sentence(weights: Mapping[str, float], sentences: Sequence[str]) -> Found:
    found = ((s, [term for term in s.split() if term in weights]) for s in sentences)
    return [(sentence, terms) for sentence, terms in found if terms]


def _by_term(weights: Mapping[str, float], sentences: Sequence[str]) -> Found:
    """The same in a third of the time where the terms are few, as in English."""
    padded = " " + " \n ".join(sentences) + " "
    places: list[tuple[int, str]] = []
    for term in weights:
        part = f" {term} "
        place = padded.find(part)
        while place >= 0:
            places.append((place, term))
            # The space at its end may begin the next one.
            place = padded.find(part, place + len(part) - 1)
    places.sort()
    starts = list(accumulate((len(sentence) + 3 for sentence in sentences[:-1]), initial=0))
    found: dict[int, list[str]] = {}
    for place, term in places:
        found.setdefault(bisect_right(starts, place) - 1, []).append(term)
    return [(sentences[number], terms) for number, terms in found.items()]


def sentence_score(query: QueryTerms, terms: Sequence[str]) -> float:
    """The weights of all the query's terms in one sentence, each once."""
    # In an order that is the same in each process, as a set's is not: sums differ by their order.
    return sum(query.weights[term] for term in dict.fromkeys(terms) if term in query.weights)


def _bm25(weights: Mapping[str, float], counts: Mapping[str, int], relative_length: float) -> float:
    norm = K1 * (1 - B + B * relative_length)
    return sum(weights[t] * n * (K1 + 1) / (n + norm) for t, n in counts.items())


def _kept_together(query: QueryTerms, lines: str, found: Found) -> float:
    """What neighbours of the query add that stand together in a sentence, and words that begin
    as its words do."""
    if lines.isascii():  # no glued script: the terms are the words
        heads, pairs = set[str](), _side_by_side(query.adjacent, lines.replace("\n", " \n "))
    else:
        heads, pairs = _heads_and_pairs(query, found)
    total = HEAD_FACTOR * sum(query.weights[head] for head in sorted(heads))
    for pair in sorted(pairs):
        glued = is_glued(pair[0]) or is_glued(pair[1])
        factor = GLUED_ADJACENT_FACTOR if glued else ADJACENT_FACTOR
        total += factor * (query.weights[pair[0]] + query.weights[pair[1]]) / 2
    return total


def _heads_and_pairs(query: QueryTerms, found: Found) -> tuple[set[str], set[tuple[str, str]]]:
    heads: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    fewest = 1 if any(a == b for a, b in query.adjacent) else 2
    for sentence, terms in found:  # mostly these rule it out
        here = set(terms)
        if len(here) < fewest and query.heads.isdisjoint(here):
            continue
        own: set[str] = set()
        if not query.heads.isdisjoint(here):
            # The first pair of a run follows its last character.
            own = {b for a, b in pairwise(sentence.split()) if len(a) == 1 and b in query.heads}
            heads |= own
        inside = here - (query.heads - own)  # heads that only stand within words say nothing
        near = {pair for pair in query.adjacent if pair[0] in inside and pair[1] in inside}
        if near:
            pairs |= _side_by_side(near, sentence)
    return heads, pairs


def _side_by_side(pairs: Set[tuple[str, str]], sentence: str) -> set[tuple[str, str]]:
    if sentence.isascii():
        padded = f" {sentence} "
        return {(a, b) for a, b in pairs if f" {a} {b} " in padded}
    return set(pairwise(word_heads(sentence.split()))).intersection(pairs)


def _is_syllable(term: str) -> bool:
    return len(term) == 1 and "가" <= term <= "힣"


def min_max(scores: Sequence[float]) -> list[float]:
    """Scores moved and stretched to [0, 1]; all equal scores become 1 if positive, else 0."""
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if high - low < 1e-9:
        return [1.0 if high > 0 else 0.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def fuse(lexical: Sequence[float], dense: Sequence[float], dense_weight: float) -> list[float]:
    """A convex combination of both after `min_max`. Rank fusion would let the weaker arm drag."""
    pairs = zip(min_max(lexical), min_max(dense), strict=True)
    return [(1 - dense_weight) * a + dense_weight * b for a, b in pairs]
