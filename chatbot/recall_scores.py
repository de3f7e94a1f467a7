"""How well each excerpt of a conversation suits a question: words, talk around them, meaning.

Arithmetic over arrays of shape (excerpts,). Knows no store and no budget. The weights were chosen
on BEAM and QMSum; see `benchmarks/memory_evidence.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chatbot.excerpts import Excerpt, is_users_own, several_voices
from chatbot.query import asks_for_reply, is_merely_short
from chatbot.relevance import Scores, TermIndex
from retrieval.words import lexical_terms

USER_WEIGHT = 2.5
"""What people ask about later is mostly what they said themselves; replies are longer and repeat
the words of the topic everywhere."""
REPLY_WEIGHT = 1.5
"""The weight of replies when the question asks for what was replied."""
EXCHANGE_WEIGHT = 0.5
"""What the user's words lend to the reply to them, and the other way round, in that case."""
PREFERENCE_WEIGHT = 1.3
NEAR_WEIGHT, NEAR_WEIGHT_REPLY = 0.3, 0.05
"""What the talk around an excerpt counts in a chat, against 1 for the best words of its own."""
OWN_WEIGHT_IN_TALK = 0.1
"""Among several voices single remarks say little; what is sought is a stretch of their talk."""
BORROWED_FACTOR = 0.5
"""What a word borrowed from earlier turns counts against one of the question."""
BORROWED_FACTOR_NAMED, NAMED_COVERAGE, NAMED_TEXTS = 0.1, 0.6, 4
"""The same where so few excerpts hold most of a short question's words that it is about these."""
MEANING_WEIGHT, MEANING_WEIGHT_WITHOUT_WORDS = 0.5, 3.0
"""What nearness in meaning counts where one excerpt holds all words of the question, and where
none holds any: words that match are the better sign, and meaning is for those that do not."""
MEANING_WEIGHT_IN_TALK = 0.2
OTHER_SIDE_MEANING, OTHER_SIDE_MEANING_REPLY = 0.3, 0.5
"""How much less the meaning of the side counts that is not asked for."""
LEAST_COSINE, FULL_COSINE = 0.25, 0.8
LEAST_COSINE_IN_TALK = 0.2


@dataclass(frozen=True, slots=True)
class View:
    """What is known of all excerpts, as arrays of shape (excerpts,)."""

    positions: NDArray[np.int64]
    users: NDArray[np.bool_]
    """The user's own words."""
    wishes: NDArray[np.bool_]
    is_talk: bool
    """Several named people speak on one side: a transcript, not a chat."""


def view_of(excerpts: Sequence[Excerpt]) -> View:
    """The arrays for these excerpts."""
    return View(
        positions=np.asarray([e.position for e in excerpts], dtype=np.int64),
        users=np.asarray([is_users_own(e.message) for e in excerpts], dtype=np.bool_),
        wishes=np.asarray([e.standing == "preference" for e in excerpts], dtype=np.bool_),
        is_talk=several_voices(e.message for e in excerpts),
    )


def scores_of(
    terms: TermIndex, view: View, query: str, *, question: str, cosines: Scores | None = None
) -> Scores | None:
    """One score an excerpt; None when nothing matches.

    `cosines` tells how near the excerpts are to the query in meaning, 0 where that is not known.
    """
    words = _by_words(terms, view, query, question)
    if cosines is None:
        return words
    meaning = _by_meaning(terms, view, question, cosines)
    total = meaning if words is None else words + meaning
    return total if total.any() else None


def _by_words(terms: TermIndex, view: View, query: str, question: str) -> Scores | None:
    asked = set(lexical_terms(question))
    factor = BORROWED_FACTOR_NAMED if _is_named(terms, question) else BORROWED_FACTOR
    weights = {
        term: weight * (1.0 if term in asked else factor)
        for term, weight in terms.weights(query).items()
    }
    if not weights:
        return None
    own, near = _scaled(terms.own(weights)), terms.near(weights)
    if view.is_talk:
        near = terms.near(terms.expanded(weights, near))
        return _scaled(_scaled(near) + OWN_WEIGHT_IN_TALK * own)
    near = _scaled(near)
    if asks_for_reply(question):
        exchange = _of_the_other_side(own, view)
        scores = np.where(view.users, 1.0, REPLY_WEIGHT) * (own + EXCHANGE_WEIGHT * exchange)
        return _scaled(scores) + NEAR_WEIGHT * near
    weighted = own * np.where(view.users, USER_WEIGHT, 1.0)
    weighted *= np.where(view.wishes, PREFERENCE_WEIGHT, 1.0)
    return _scaled(weighted) + np.where(view.users, NEAR_WEIGHT, NEAR_WEIGHT_REPLY) * near


def _is_named(terms: TermIndex, question: str) -> bool:
    if not is_merely_short(question):
        return False
    return 0 < int((terms.coverage(question) >= NAMED_COVERAGE).sum()) <= NAMED_TEXTS


def _by_meaning(terms: TermIndex, view: View, question: str, cosines: Scores) -> Scores:
    if view.is_talk:
        near = np.clip(cosines - LEAST_COSINE_IN_TALK, 0.0, None)
        return MEANING_WEIGHT_IN_TALK * _scaled(terms.spread(near))
    meaning = np.clip(cosines - LEAST_COSINE, 0.0, None) / (FULL_COSINE - LEAST_COSINE)
    if asks_for_reply(question):
        meaning = meaning * np.where(view.users, OTHER_SIDE_MEANING_REPLY, 1.0)
    else:
        meaning = meaning * np.where(view.users, 1.0, OTHER_SIDE_MEANING)
    held = float(terms.coverage(question).max(initial=0.0))
    return meaning * (held * MEANING_WEIGHT + (1.0 - held) * MEANING_WEIGHT_WITHOUT_WORDS)


def _scaled(scores: Scores) -> Scores:
    best = float(scores.max()) if len(scores) else 0.0
    return scores / best if best > 0 else scores


def _of_the_other_side(own: Scores, view: View) -> Scores:
    """For each excerpt the best score of the other side of its turn."""
    sides = np.zeros((2, int(view.positions.max()) + 1))
    side = view.users.astype(np.int64)
    np.maximum.at(sides, (side, view.positions), own)
    other: Scores = sides[1 - side, view.positions]
    return other


def stretched(cosines: Scores) -> Scores:
    """Some models give all texts nearly the same cosine: what counts is what is above the mean."""
    found = cosines[cosines != 0]
    mean = float(np.clip(found.mean(), 0.0, 0.95)) if len(found) else 0.0
    return np.where(cosines != 0, (cosines - mean) / (1.0 - mean), 0.0)
