"""Older turns as a searchable collection of excerpts. Knows no budget and no prompt.

Derived from the stored turns and rebuilt from them at need: nothing here is worth saving.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chatbot.excerpts import Excerpt, split_message
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
ASIDE_NAME = "system"
"""Imported results of tools stand on the user's side under this name."""


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

    def sync(self, turns: Sequence[Turn]) -> None:
        """Make the index hold exactly these turns."""
        with self._lock:
            same = 0
            for old, new in zip(self._turns, turns, strict=False):
                if old.id != new.id or old.message_ids != new.message_ids:
                    break
                same += 1
            self._drop_from(same)
            for position in range(same, len(turns)):
                self._add(position, turns[position])

    def search(
        self,
        query: str,
        *,
        question: str | None = None,
        before: int | None = None,
        limit_tokens: int = 4000,
    ) -> list[Excerpt]:
        """Best excerpts first, up to `limit_tokens` of text in all; scores are positive.

        `question` is the part of the query that was really asked; the rest was borrowed from the
        turns before it and counts less. Only turns numbered below `before` are searched.
        """
        with self._lock:
            scores = self._scores(query, query if question is None else question)
            if scores is None:
                return []
            best = float(scores.max())
            # Ties go to the earlier excerpt, so that the order is the same on every machine.
            order = [int(n) for n in np.argsort(-scores, kind="stable")]
            rules = self._instructions()
            ranked = [replace(self._excerpts[n], score=best) for n in rules]
            ranked += [
                replace(self._excerpts[n], score=float(scores[n]))
                for n in order
                if scores[n] >= LEAST_SHARE * best and n not in rules
            ]
        return _within([e for e in ranked if before is None or e.position < before], limit_tokens)

    def _scores(self, query: str, question: str) -> Scores | None:
        """One score an excerpt, about 1 for the best, or None when no word matches."""
        asked = set(lexical_terms(question))
        weights = {
            term: weight * (1.0 if term in asked else BORROWED_FACTOR)
            for term, weight in self._terms.weights(query).items()
        }
        if not weights:
            return None
        own, near = _scaled(self._terms.own(weights)), self._terms.near(weights)
        if self._is_talk():
            near = self._terms.near(self._terms.expanded(weights, near))
            return _scaled(near) + OWN_WEIGHT_IN_TALK * own
        near = _scaled(near)
        users = np.asarray([is_users_own(e.message) for e in self._excerpts])
        if asks_for_reply(question):
            exchange = self._of_the_other_side(own, users)
            scores = np.where(users, 1.0, REPLY_WEIGHT) * (own + EXCHANGE_WEIGHT * exchange)
            return _scaled(scores) + NEAR_WEIGHT * near
        wishes = np.asarray([e.standing == "preference" for e in self._excerpts])
        weighted = (
            own * np.where(users, USER_WEIGHT, 1.0) * np.where(wishes, PREFERENCE_WEIGHT, 1.0)
        )
        return _scaled(weighted) + np.where(users, NEAR_WEIGHT, NEAR_WEIGHT_REPLY) * near

    def _of_the_other_side(self, own: Scores, users: NDArray[np.bool_]) -> Scores:
        """For each excerpt the best score of the other side of its turn."""
        positions = np.asarray([e.position for e in self._excerpts])
        sides = np.zeros((2, len(self._turns)))
        np.maximum.at(sides, (users.astype(np.int64), positions), own)
        other: Scores = sides[1 - users.astype(np.int64), positions]
        return other

    def _is_talk(self) -> bool:
        """Whether several named people speak on one side: a transcript, not a chat."""
        voices: defaultdict[str, set[str]] = defaultdict(set)
        for e in self._excerpts:
            if e.message.name and e.message.name != ASIDE_NAME:
                voices[e.message.role].add(e.message.name)
        return any(len(names) > 1 for names in voices.values())

    def _instructions(self) -> list[int]:
        chosen: list[int] = []
        tokens = 0
        for number in range(len(self._excerpts) - 1, -1, -1):
            e = self._excerpts[number]
            if e.standing == "instruction" and tokens + e.tokens <= ALL_INSTRUCTION_TOKENS:
                chosen.append(number)
                tokens += e.tokens
            if len(chosen) == MAX_INSTRUCTIONS:
                break
        return chosen

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


def is_users_own(message: Message) -> bool:
    """Whether the user of the chat said this, not a tool."""
    return message.role == "user" and message.name != ASIDE_NAME


def _scaled(scores: Scores) -> Scores:
    best = float(scores.max()) if len(scores) else 0.0
    return scores / best if best > 0 else scores


def _within(excerpts: Sequence[Excerpt], limit_tokens: int) -> list[Excerpt]:
    chosen: list[Excerpt] = []
    tokens = 0
    for excerpt in excerpts:
        tokens += excerpt.tokens
        if tokens > limit_tokens:
            break
        chosen.append(excerpt)
    return chosen
