"""Older turns as a searchable collection of excerpts. Knows no budget and no prompt.

Derived from the stored turns and rebuilt from them at need: nothing here is worth saving.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chatbot.messages import Conversation, Message, Turn
from chatbot.standing import Standing, standing
from retrieval.sentences import sentence_cells
from retrieval.types import CountTokens
from retrieval.words import content_terms, lexical_terms

PART_TOKENS = 120
"""Long messages are searched and recalled in parts of about this size."""
MAX_PART_TOKENS = 240
KEPT_CONVERSATIONS = 16
USER_WEIGHT = 2.0
"""What people ask about later is mostly what they said themselves; replies are longer and repeat
the words of the topic everywhere. Does not apply to transcripts with named speakers."""
PREFERENCE_WEIGHT = 1.3
MAX_INSTRUCTIONS = 4
"""The newest standing instructions come back with every question, whatever its words are."""
MAX_INSTRUCTION_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of an earlier message: `message.content[start:end]` in turn number `position`."""

    position: int
    message: Message
    start: int
    end: int
    score: float
    standing: Standing | None = None

    @property
    def text(self) -> str:
        return self.message.content[self.start : self.end].strip()


class RecallIndex:
    """The excerpts of one conversation, searched by words (BM25 in an in-memory FTS5 table).

    Follows the conversation: `sync` adds new turns and takes back those that were edited away.
    Safe to use from several threads.
    """

    def __init__(self, count_tokens: CountTokens) -> None:
        self._count_tokens = count_tokens
        self._lock = threading.Lock()
        self._turns: list[Turn] = []
        self._excerpts: dict[int, Excerpt] = {}
        self._instructions: list[int] = []
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(
            "CREATE VIRTUAL TABLE words"
            " USING fts5(terms, tokenize = 'unicode61 remove_diacritics 0')"
        )

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

    def search(self, query: str, *, before: int | None = None, limit: int = 40) -> list[Excerpt]:
        """Best excerpts first, from turns numbered below `before` only; scores are positive."""
        terms = content_terms(query) or set(lexical_terms(query))
        if not terms:
            return []
        match = " OR ".join(f'"{term}"' for term in sorted(terms))
        wanted = 4 * limit
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ?"
                " ORDER BY bm25(words), rowid LIMIT ?",
                (match, wanted),
            ).fetchall()
            found = {row_id: self._scored(row_id, score) for row_id, score in rows}
            self._add_instructions(found)
        ranked = sorted(found.values(), key=lambda e: (-e.score, e.standing != "instruction"))
        return [e for e in ranked if before is None or e.position < before][:limit]

    def _scored(self, row_id: int, score: float) -> Excerpt:
        e = self._excerpts[row_id]
        own_words = e.message.role == "user" and e.message.name is None
        weight = USER_WEIGHT if own_words else 1.0
        weight *= PREFERENCE_WEIGHT if e.standing == "preference" else 1.0
        return replace(e, score=score * weight)

    def _add_instructions(self, found: dict[int, Excerpt]) -> None:
        best = max((e.score for e in found.values()), default=1.0)
        for row_id in self._instructions[-MAX_INSTRUCTIONS:]:
            known = found.get(row_id, self._excerpts[row_id])
            found[row_id] = replace(known, score=best)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _add(self, position: int, turn: Turn) -> None:
        for message in (*turn.user, *turn.assistant):
            for start, end in split_message(message.content, self._count_tokens):
                row_id = len(self._excerpts) + 1
                self._excerpts[row_id] = self._excerpt(position, message, start, end)
                if self._excerpts[row_id].standing == "instruction":
                    self._instructions.append(row_id)
                speaker = f"{message.name} " if message.name else ""
                terms = lexical_terms(speaker + message.content[start:end])
                self._database.execute(
                    "INSERT INTO words(rowid, terms) VALUES (?, ?)", (row_id, " ".join(terms))
                )
        self._turns.append(turn)

    def _excerpt(self, position: int, message: Message, start: int, end: int) -> Excerpt:
        text = message.content[start:end]
        own_words = message.role == "user" and message.name is None
        kind = standing(text) if own_words else None
        if kind == "instruction" and self._count_tokens(text) > MAX_INSTRUCTION_TOKENS:
            # A rule is said in a line or two; in a long text the same words mean little.
            kind = "preference"
        return Excerpt(position, message, start, end, 0.0, kind)

    def _drop_from(self, position: int) -> None:
        for row_id in [r for r, e in self._excerpts.items() if e.position >= position]:
            del self._excerpts[row_id]
            if row_id in self._instructions:
                self._instructions.remove(row_id)
            self._database.execute("DELETE FROM words WHERE rowid = ?", (row_id,))
        del self._turns[position:]


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


def split_message(text: str, count_tokens: CountTokens) -> list[tuple[int, int]]:
    """Parts of a message as character spans that join up: whole sentences, about PART_TOKENS.

    A sentence above MAX_PART_TOKENS is cut at spaces or, without any, in the middle.
    """
    parts: list[tuple[int, int]] = []
    begin, size = 0, 0
    for start, end in _small_cells(text, count_tokens):
        tokens = count_tokens(text[start:end])
        if size and size + tokens > PART_TOKENS:
            parts.append((begin, start))
            begin, size = start, 0
        size += tokens
    if text[begin:].strip():
        parts.append((begin, len(text)))
    return parts


def _small_cells(text: str, count_tokens: CountTokens) -> list[tuple[int, int]]:
    cells: list[tuple[int, int]] = []
    for start, end in sentence_cells(text):
        # A token is at least one character in all but the rarest scripts: skip the count.
        small = end - start <= PART_TOKENS or count_tokens(text[start:end]) <= MAX_PART_TOKENS
        cells.extend([(start, end)] if small else _halves(text, start, end, count_tokens))
    return cells


def _halves(text: str, start: int, end: int, count_tokens: CountTokens) -> list[tuple[int, int]]:
    if end - start < 2 or count_tokens(text[start:end]) <= PART_TOKENS:
        return [(start, end)]
    middle = (start + end) // 2
    space = text.rfind(" ", start + 1, middle)
    newline = text.rfind("\n", start + 1, middle)
    cut = max(space, newline) + 1 if max(space, newline) > start else middle
    return [*_halves(text, start, cut, count_tokens), *_halves(text, cut, end, count_tokens)]
