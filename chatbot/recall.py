"""Older turns as a searchable collection of excerpts. Knows no budget and no prompt.

Derived from the stored turns and rebuilt from them at need: nothing here is worth saving.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chatbot.excerpts import Excerpt, is_users_own, several_voices, split_message
from chatbot.messages import Conversation, Message, Turn
from chatbot.query import asks_for_reply
from chatbot.relevance import Scores, TermIndex
from chatbot.standing import standing
from retrieval.types import CountTokens
from retrieval.words import lexical_terms

KEPT_CONVERSATIONS = 16
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
LEAST_SHARE = 0.1
"""Excerpts below this share of the best score are noise."""
MAX_INSTRUCTIONS = 8
"""The newest standing instructions come back with every question, whatever its words are."""
MAX_INSTRUCTION_TOKENS = 60
ALL_INSTRUCTION_TOKENS = 240


@dataclass(frozen=True, slots=True)
class _View:
    """What is known of all excerpts, as arrays of shape (excerpts,)."""

    positions: NDArray[np.int64]
    users: NDArray[np.bool_]
    """The user's own words."""
    wishes: NDArray[np.bool_]
    is_talk: bool
    """Several named people speak on one side: a transcript, not a chat."""
    instructions: tuple[int, ...]
    """The newest standing instructions, newest first."""


class RecallIndex:
    """The excerpts of one conversation, searched by words.

    Follows the conversation: `sync` adds new turns and takes back those that were edited away.
    Safe to use from several threads.
    """

    def __init__(self, count_tokens: CountTokens) -> None:
        self._count_tokens = count_tokens
        self._lock = threading.Lock()
        self._turns: list[Turn] = []
        self._excerpts: list[Excerpt] = []
        self._terms = TermIndex()
        self._known: _View | None = None

    def sync(self, turns: Sequence[Turn]) -> None:
        """Make the index hold exactly these turns."""
        with self._lock:
            same = 0
            for old, new in zip(self._turns, turns, strict=False):
                if old.id != new.id or old.message_ids != new.message_ids:
                    break
                same += 1
            if same == len(turns) == len(self._turns):
                return
            self._known = None
            self._drop_from(same)
            for position in range(same, len(turns)):
                self._add(position, turns[position])

    def search(
        self, query: str, *, question: str | None = None, limit_tokens: int = 4000
    ) -> list[Excerpt]:
        """Best excerpts first, up to `limit_tokens` of text in all; scores are positive.

        `question` is the part of the query that was really asked; the rest was borrowed from the
        turns before it and counts less.
        """
        with self._lock:
            scores = self._scores(query, query if question is None else question)
            return [] if scores is None else list(self._best(scores, limit_tokens))

    def _best(self, scores: Scores, limit_tokens: int) -> Iterator[Excerpt]:
        """Standing instructions, then the best of the others, until the tokens are spent."""
        best = float(scores.max())
        rules = self._view().instructions
        for number in rules:
            limit_tokens -= self._excerpts[number].tokens
            yield replace(self._excerpts[number], score=best)
        # Ties go to the earlier excerpt, so that the order is the same on every machine.
        for number in np.argsort(-scores, kind="stable").tolist():
            if number in rules:
                continue
            limit_tokens -= self._excerpts[number].tokens
            if limit_tokens < 0 or scores[number] < LEAST_SHARE * best:
                return
            yield replace(self._excerpts[number], score=float(scores[number]))

    def _scores(self, query: str, question: str) -> Scores | None:
        """One score an excerpt, about 1 for the best, or None when no word matches."""
        asked = set(lexical_terms(question))
        weights = {
            term: weight * (1.0 if term in asked else BORROWED_FACTOR)
            for term, weight in self._terms.weights(query).items()
        }
        if not weights:
            return None
        view = self._view()
        own, near = _scaled(self._terms.own(weights)), self._terms.near(weights)
        if view.is_talk:
            near = self._terms.near(self._terms.expanded(weights, near))
            return _scaled(near) + OWN_WEIGHT_IN_TALK * own
        near = _scaled(near)
        if asks_for_reply(question):
            exchange = _of_the_other_side(own, view)
            scores = np.where(view.users, 1.0, REPLY_WEIGHT) * (own + EXCHANGE_WEIGHT * exchange)
            return _scaled(scores) + NEAR_WEIGHT * near
        weighted = own * np.where(view.users, USER_WEIGHT, 1.0)
        weighted *= np.where(view.wishes, PREFERENCE_WEIGHT, 1.0)
        return _scaled(weighted) + np.where(view.users, NEAR_WEIGHT, NEAR_WEIGHT_REPLY) * near

    def _view(self) -> _View:
        if self._known is None:
            self._known = _view_of(self._excerpts)
        return self._known

    def _add(self, position: int, turn: Turn) -> None:
        for message in (*turn.user, *turn.assistant):
            for start, end in split_message(message.content, self._count_tokens):
                excerpt = self._excerpt(position, message, start, end)
                self._excerpts.append(excerpt)
                speaker = f"{message.name} " if message.name else ""
                terms = lexical_terms(speaker + message.content[start:end])
                self._terms.add(terms, excerpt.tokens)
        self._turns.append(turn)

    def _excerpt(self, position: int, message: Message, start: int, end: int) -> Excerpt:
        text = message.content[start:end]
        tokens = self._count_tokens(text)
        kind = standing(text) if is_users_own(message) else None
        if kind == "instruction" and tokens > MAX_INSTRUCTION_TOKENS:
            # A rule is said in a line or two; in a long text the same words mean little.
            kind = "preference"
        return Excerpt(position, message, start, end, 0.0, kind, tokens)

    def _drop_from(self, position: int) -> None:
        size = next(
            (n for n, e in enumerate(self._excerpts) if e.position >= position),
            len(self._excerpts),
        )
        del self._excerpts[size:], self._turns[position:]
        self._terms.truncate(size)


class RecallIndexes:
    """One `RecallIndex` for each of the conversations that were used last."""

    def __init__(self, count_tokens: CountTokens) -> None:
        self._count_tokens = count_tokens
        self._lock = threading.Lock()
        self._indexes: OrderedDict[str, RecallIndex] = OrderedDict()

    def of(self, conversation: Conversation) -> RecallIndex:
        """The index of a conversation, brought up to date."""
        with self._lock:
            index = self._indexes.pop(conversation.id, None) or RecallIndex(self._count_tokens)
            self._indexes[conversation.id] = index
            while len(self._indexes) > KEPT_CONVERSATIONS:
                self._indexes.popitem(last=False)
        index.sync(conversation.turns)
        return index

    def forget(self, conversation_id: str) -> None:
        with self._lock:
            self._indexes.pop(conversation_id, None)


def _scaled(scores: Scores) -> Scores:
    best = float(scores.max()) if len(scores) else 0.0
    return scores / best if best > 0 else scores


def _view_of(excerpts: Sequence[Excerpt]) -> _View:
    is_talk = several_voices(e.message for e in excerpts)
    return _View(
        positions=np.asarray([e.position for e in excerpts], dtype=np.int64),
        users=np.asarray([is_users_own(e.message) for e in excerpts], dtype=np.bool_),
        wishes=np.asarray([e.standing == "preference" for e in excerpts], dtype=np.bool_),
        is_talk=is_talk,
        # What people ask of each other in a transcript is nothing that they ask of the chatbot.
        instructions=() if is_talk else _instructions(excerpts),
    )


def _instructions(excerpts: Sequence[Excerpt]) -> tuple[int, ...]:
    chosen: list[int] = []
    tokens = 0
    for number in range(len(excerpts) - 1, -1, -1):
        e = excerpts[number]
        if e.standing == "instruction" and tokens + e.tokens <= ALL_INSTRUCTION_TOKENS:
            chosen.append(number)
            tokens += e.tokens
        if len(chosen) == MAX_INSTRUCTIONS:
            break
    return tuple(chosen)


def _of_the_other_side(own: Scores, view: _View) -> Scores:
    """For each excerpt the best score of the other side of its turn."""
    sides = np.zeros((2, int(view.positions.max()) + 1))
    side = view.users.astype(np.int64)
    np.maximum.at(sides, (side, view.positions), own)
    other: Scores = sides[1 - side, view.positions]
    return other
