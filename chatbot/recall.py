"""Older turns as a searchable collection of excerpts. Knows no budget and no prompt.

Derived from the stored turns: nothing here is worth saving.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from chatbot.excerpts import PART_TOKENS, Excerpt, is_users_own, split_message
from chatbot.messages import Message, Turn
from chatbot.need import Match
from chatbot.query import leans_on_earlier_turns
from chatbot.recall_scores import View, scores_of, stretched, view_of
from chatbot.recall_vectors import Kept, RecallVectors, digest
from chatbot.relevance import Scores, TermIndex
from chatbot.standing import standing
from chatbot.turn_changes import common_front
from retrieval.embed import Vectors
from retrieval.types import CountTokens
from retrieval.words import lexical_terms

LEAST_SHARE = 0.1
"""Excerpts below this share of the best score are noise."""
SHORT_TOKENS = 40
"""A longer excerpt says itself what it is about."""
MAX_INSTRUCTIONS = 8
"""The newest standing instructions come back with every question, whatever its words are."""
MAX_INSTRUCTION_TOKENS = 60
ALL_INSTRUCTION_TOKENS = 240


class RecallIndex:
    """The excerpts of one conversation, searched by words and, where there are vectors, meaning.

    Follows the conversation: `sync` adds new turns and takes out those that were edited away or
    forgotten, wherever they stand. Safe to use from several threads.
    """

    def __init__(
        self,
        count_tokens: CountTokens,
        vectors: RecallVectors | None = None,
        conversation_id: str = "",
    ) -> None:
        self._count_tokens = count_tokens
        self._vectors = vectors
        self._conversation_id = conversation_id
        self._lock = threading.Lock()
        self._turns: list[Turn] = []
        self._questions: list[str] = []
        self._excerpts: list[Excerpt] = []
        self._digests: list[bytes] = []
        self._terms = TermIndex()
        self._known: tuple[View, tuple[int, ...]] | None = None
        self._standing: tuple[int, list[Excerpt]] | None = None
        self._rows: Vectors | None = None
        self._held: Mapping[bytes, Kept] = {}
        self._rows_of: tuple[int, int] = (0, 0)

    def sync(self, turns: Sequence[Turn]) -> None:
        """Make the index hold exactly these turns. Only those that differ cost anything much."""
        with self._lock:
            same = common_front(self._turns, turns)
            if same == len(turns) == len(self._turns):
                return
            kept = common_front(self._turns[same:][::-1], turns[same:][::-1])
            self._known = self._rows = self._standing = None
            self._replace(same, len(self._turns) - kept, turns[same : len(turns) - kept])

    def search(
        self, query: str, *, question: str | None = None, limit_tokens: int = 4000
    ) -> list[Excerpt]:
        """Best excerpts first, up to `limit_tokens` of text in all; scores are positive.

        `question` is the part of the query that was really asked; the rest was borrowed from the
        turns before it and counts less.
        """
        with self._lock:
            view, instructions = self._view()
            scores = scores_of(
                self._terms,
                view,
                query,
                question=query if question is None else question,
                cosines=self._cosines(query),
            )
            return [] if scores is None else list(self._best(scores, instructions, limit_tokens))

    def instructions(self, turns: int) -> list[Excerpt]:
        """The newest standing instructions of the first `turns`, newest first."""
        with self._lock:
            if self._view()[0].is_talk:
                return []
            if self._standing is None or self._standing[0] != turns:
                old = [e for e in self._excerpts if e.position < turns]
                self._standing = turns, [old[number] for number in _instructions(old)]
            return list(self._standing[1])

    def match(self, message: str, query: str, folded: int) -> Match:
        """How well the first `folded` turns suit a message, and how well the turns after them.

        Turns that begin with this very message say nothing: it is asked for the second time.
        """
        with self._lock:
            if not self._excerpts:
                return Match()
            view, _ = self._view()
            asked = message.strip()
            again = [n for n, question in enumerate(self._questions) if question == asked]
            old = (view.positions < folded) & ~np.isin(view.positions, again)
            covered, cosines = self._terms.coverage(message), self._cosines(query)
            near = np.zeros(len(covered)) if cosines is None else cosines
            return Match(
                *(
                    float(covered[rows].max(initial=0.0))
                    for rows in (old, view.positions >= folded)
                ),
                *(float(near[rows].max(initial=0.0)) for rows in (old, view.positions >= folded)),
            )

    def texts(self) -> list[str]:
        """The texts of all excerpts, in the order in which they need a vector.

        The user's own words before replies, and short ones before long ones: the fewer words an
        excerpt has, the less likely a question shares one with it.
        """
        with self._lock:
            order = sorted(
                self._excerpts,
                key=lambda e: (not is_users_own(e.message), e.tokens, -e.position, e.start),
            )
        return [excerpt.text for excerpt in order]

    def _best(self, scores: Scores, rules: tuple[int, ...], limit_tokens: int) -> Iterator[Excerpt]:
        """Standing instructions, then the best of the others, until the tokens are spent."""
        best = float(scores.max())
        for number in rules:
            limit_tokens -= self._excerpts[number].tokens
            yield replace(self._excerpts[number], score=best)
        taken = set(rules)
        # Ties go to the earlier excerpt, so that the order is the same on every machine.
        for number in np.argsort(-scores, kind="stable").tolist():
            if number in taken:
                continue
            limit_tokens -= self._excerpts[number].tokens
            if limit_tokens < 0 or scores[number] < LEAST_SHARE * best:
                return
            taken.add(number)
            yield replace(self._excerpts[number], score=float(scores[number]))
            before = self._needed_before(number)
            if before is not None and before not in taken:
                neighbour = self._excerpts[before]
                if neighbour.tokens <= limit_tokens:
                    limit_tokens -= neighbour.tokens
                    taken.add(before)
                    yield replace(neighbour, score=float(scores[before]))

    def _needed_before(self, number: int) -> int | None:
        """The excerpt before a short one that cannot be understood alone, such as the question
        before "Yes, the second one."."""
        excerpt = self._excerpts[number]
        view, _ = self._view()
        if number == 0 or view.is_talk or excerpt.start > 0 or excerpt.tokens > SHORT_TOKENS:
            return None
        if self._excerpts[number - 1].tokens > PART_TOKENS:
            return None
        return number - 1 if leans_on_earlier_turns(excerpt.text) else None

    def _view(self) -> tuple[View, tuple[int, ...]]:
        """The arrays of the excerpts, and the newest standing instructions, newest first."""
        if self._known is None:
            view = view_of(self._excerpts)
            # What people ask of each other in a transcript is nothing that they ask of the chatbot.
            self._known = view, () if view.is_talk else _instructions(self._excerpts)
        return self._known

    def _cosines(self, query: str) -> Scores | None:
        """How near each excerpt is to the query in meaning, 0 for those without a vector."""
        if self._vectors is None or not self._excerpts:
            return None
        known = self._vectors.known(self._conversation_id)
        vector = self._vectors.query(query) if known else None
        if vector is None:
            return None
        if self._rows is None or self._rows_of != (id(known), len(known)):
            nothing = np.zeros(len(vector), dtype=np.float16)
            rows = [known.get(digest, nothing) for digest in self._digests]
            self._held = known  # so that no other mapping takes its id
            self._rows, self._rows_of = np.asarray(rows, dtype=np.float32), (id(known), len(known))
        cosines = (self._rows @ vector).astype(np.float64)
        # Rounded, so that the order of sums inside the library does not decide between equals.
        return np.round(cosines if self._vectors.english_only else stretched(cosines), 4)

    def _replace(self, start: int, end: int, turns: Sequence[Turn]) -> None:
        """Put turns in the place of those from start to end."""
        at = bisect_left(self._excerpts, start, key=lambda e: e.position)
        until = bisect_left(self._excerpts, end, key=lambda e: e.position)
        added, texts = self._excerpts_of(turns, start)
        moved = len(turns) - (end - start)
        behind = self._excerpts[until:]
        if moved:
            behind = [replace(excerpt, position=excerpt.position + moved) for excerpt in behind]
        self._excerpts[at:] = [*added, *behind]
        self._digests[at:until] = [digest(excerpt.text) for excerpt in added]
        self._terms.splice(at, until, texts)
        self._turns[start:end] = turns
        self._questions[start:end] = [turn.question.strip() for turn in turns]

    def _excerpts_of(
        self, turns: Sequence[Turn], start: int
    ) -> tuple[list[Excerpt], list[tuple[list[str], int]]]:
        """The excerpts of turns from position `start` on, and the terms and tokens of each."""
        found: list[Excerpt] = []
        texts: list[tuple[list[str], int]] = []
        for position, turn in enumerate(turns, start):
            for message in (*turn.user, *turn.assistant):
                for begin, stop in split_message(message.content, self._count_tokens):
                    found.append(self._excerpt(position, message, begin, stop))
                    speaker = f"{message.name} " if message.name else ""
                    terms = lexical_terms(speaker + message.content[begin:stop])
                    texts.append((terms, found[-1].tokens))
        return found, texts

    def _excerpt(self, position: int, message: Message, start: int, end: int) -> Excerpt:
        text = message.content[start:end]
        tokens = self._count_tokens(text)
        kind = standing(text) if is_users_own(message) else None
        if kind == "instruction" and tokens > MAX_INSTRUCTION_TOKENS:
            # A rule is said in a line or two; in a long text the same words mean little.
            kind = "preference"
        return Excerpt(position, message, start, end, 0.0, kind, tokens)


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
