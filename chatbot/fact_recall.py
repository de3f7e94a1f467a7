"""Lines of the user that a question asks for, out of all turns, with what they were before.

What falls out of the list of facts is found here: a short line costs few tokens, and it says when
a value has been corrected since. Knows no budget; derived from the turns, nothing here is stored.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import prompts
from chatbot.excerpts import Excerpt
from chatbot.facts import LEAST_ASKED_FOR, extract_facts, fact_note, fact_spans
from chatbot.linking import Linker
from chatbot.messages import Conversation, Fact, Message, Turn
from chatbot.relevance import TermIndex
from chatbot.turn_changes import common_front
from chatbot.words import word_groups
from retrieval.types import CountTokens
from retrieval.words import hangul_share, lexical_terms

KEPT_CONVERSATIONS = 16
MOST_LINES, LOOKED_AT = 3, 16
LEAST_COVERAGE, LEAST_COVERAGE_HANGUL = 0.34, 0.15
"""Shares of the question's words, by weight, that a line holds; Korean endings differ more."""
LEAST_OF_BEST = 0.6
KIN_FACTOR = 0.35
"""What a word of the same matter counts against the word itself."""
_ASKS = re.compile(
    r"[?？]|^\W*(?:who|whom|whose|what|when|where|which|how|tell me|remind me|give me|name)\b"
    r"|(?:까|나요|은가|는가|니|죠|지|(?:알려|말해|가르쳐)\s?(?:줘|줘요|주세요|주실래요|줄래))\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Line:
    fact: Fact
    position: int
    message: Message
    start: int
    end: int
    old: Fact | None = None
    """The line that it takes the place of."""


class FactLines:
    """The lines of one conversation. Follows it as recall does; not safe for several threads."""

    def __init__(self, count_tokens: CountTokens) -> None:
        self._count_tokens = count_tokens
        self._turns: list[Turn] = []
        self._lines: list[_Line] = []
        self._terms = TermIndex()
        self._newer: dict[str, list[int]] = {}
        """Id of a fact -> numbers of the lines that took its place, or that of a value in it."""
        self._of_message: dict[str, list[int]] = {}
        self._linked: list[int] = []  # of each fact in the linker the position
        self._linker = Linker()

    def sync(self, turns: Sequence[Turn]) -> None:
        """Hold exactly the lines of these turns."""
        same = common_front(self._turns, turns)
        if same < len(self._turns):
            self._keep(same)
        for position in range(same, len(turns)):
            self._add(position, turns[position])

    def asked_for(self, question: str) -> list[int]:
        """Numbers of the lines that suit a question best, the newest of each matter."""
        if not self._lines or not _ASKS.search(question):
            return []
        hangul = hangul_share(question) > 0.5
        least = LEAST_COVERAGE_HANGUL if hangul else LEAST_COVERAGE
        covered = self._terms.coverage(question)
        kin = self._terms.own(self._terms.weights(" ".join(_kin(question))))
        scores = self._terms.own(self._terms.weights(question)) + KIN_FACTOR * kin
        found: dict[int, None] = {}
        # Of equals the newest: what was said last holds.
        for number in np.lexsort((-np.arange(len(scores)), -scores)).tolist():
            if scores[number] < LEAST_OF_BEST * scores.max() or len(found) >= MOST_LINES:
                break
            if covered[number] >= least or kin[number] > 0:
                found |= dict.fromkeys(self.newest(number))
        return list(found)

    def newest(self, number: int) -> list[int]:
        """The lines that hold now in place of this one; several if several values changed."""
        found, left = [], [number]
        while left:
            at = left.pop()
            later = self._newer.get(self._lines[at].fact.id, [])  # lines behind it
            left += reversed(later)
            found += [] if later else [at]
        return found

    def outdated_in(self, excerpt: Excerpt) -> list[int]:
        """Newer lines for what a part of a message says and what no longer holds."""
        return [
            newer
            for number in self._of_message.get(excerpt.message.id, ())
            if excerpt.start <= self._lines[number].start < excerpt.end
            and self._lines[number].fact.id in self._newer
            for newer in self.newest(number)
        ]

    def with_later(self, excerpt: Excerpt, language: str) -> Excerpt:
        """An excerpt with a note of what was said instead later on, if there is such a thing."""
        later = [self._lines[number] for number in dict.fromkeys(self.outdated_in(excerpt))]
        if not later:
            return excerpt
        notes = [prompts.load("fact_later", language, later=line.fact.text) for line in later]
        ids = tuple(line.message.id for line in later if line.message.id != excerpt.message.id)
        texts = tuple(line.fact.text for line in later)
        return replace(excerpt, note="; ".join(notes), note_of=ids, later=texts)

    def excerpt(self, number: int, language: str) -> Excerpt:
        """A line as a recalled excerpt, with a note if it is a correction."""
        line = self._lines[number]
        text = line.message.content[line.start : line.end]
        return Excerpt(
            line.position,
            line.message,
            line.start,
            line.end,
            score=1.0,
            tokens=self._count_tokens(text),
            note=fact_note(line.fact, language),
            note_of=() if line.old is None else (line.old.message_id,),
        )

    def fact(self, number: int) -> Fact:
        return self._lines[number].fact

    def _add(self, position: int, turn: Turn) -> None:
        for fact in extract_facts([turn], least_weight=LEAST_ASKED_FOR):
            found = self._linker.link(fact)
            self._linked.append(position)
            if (spans := fact_spans(turn, found.fact)) is None:
                continue
            self._terms.add(lexical_terms(found.fact.text), self._count_tokens(found.fact.text))
            self._lines.append(_Line(found.fact, position, *spans, found.replaces))
            self._enter(len(self._lines) - 1)
        self._turns.append(turn)

    def _enter(self, number: int) -> None:
        line = self._lines[number]
        self._of_message.setdefault(line.message.id, []).append(number)
        if line.old is not None:
            self._newer.setdefault(line.old.id, []).append(number)

    def _keep(self, turns: int) -> None:
        """Drop what came of all but so many turns, as if it had never been said."""
        size = sum(line.position < turns for line in self._lines)
        del self._turns[turns:], self._lines[size:]
        self._terms.truncate(size)
        del self._linked[bisect_left(self._linked, turns) :]
        self._linker.keep(len(self._linked))
        self._newer, self._of_message = {}, {}
        for number in range(size):
            self._enter(number)


class FactRecall:
    """The lines of the conversations that were used last. Safe to use from several threads."""

    def __init__(self, count_tokens: CountTokens) -> None:
        self._count_tokens = count_tokens
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, FactLines] = OrderedDict()

    def forget(self, conversation_id: str) -> None:
        """Drop what is kept of a conversation."""
        with self._lock:
            self._kept.pop(conversation_id, None)

    def beside(
        self,
        conversation: Conversation,
        question: str,
        excerpts: Sequence[Excerpt],
        *,
        language: str,
    ) -> tuple[Excerpt, ...]:
        """`excerpts` behind the lines that the question asks for.

        Lines that the list of facts holds are left out. An excerpt that says what no longer holds
        says so, and the newer line comes along.
        """
        if not conversation.turns:
            return tuple(excerpts)
        with self._lock:
            lines = self._of(conversation)
            numbers = lines.asked_for(question)
            shown = [lines.with_later(e, language) for e in excerpts[:LOOKED_AT]]
            for excerpt in excerpts[:LOOKED_AT]:
                numbers += lines.outdated_in(excerpt)
            facts = conversation.summary.facts if conversation.summary else ()
            listed = {fact.id for fact in facts}
            chosen = [n for n in dict.fromkeys(numbers) if lines.fact(n).id not in listed]
            found = [lines.excerpt(n, language) for n in chosen[: 2 * MOST_LINES]]
        return tuple(_joined(found, [*shown, *excerpts[LOOKED_AT:]]))

    def _of(self, conversation: Conversation) -> FactLines:
        lines = self._kept.pop(conversation.id, None) or FactLines(self._count_tokens)
        self._kept[conversation.id] = lines
        while len(self._kept) > KEPT_CONVERSATIONS:
            self._kept.popitem(last=False)
        lines.sync(conversation.turns)
        return lines


def _joined(found: Sequence[Excerpt], excerpts: Sequence[Excerpt]) -> Iterator[Excerpt]:
    """The lines found first; an excerpt that holds such a line takes its place, with its note."""
    taken: set[int] = set()
    for line in found:
        holder = next((n for n, e in enumerate(excerpts) if _holds(e, line)), None)
        if holder is None:
            yield line
        elif holder not in taken:
            taken.add(holder)
            held = excerpts[holder]
            notes = "; ".join(note for note in (line.note, held.note) if note)
            yield replace(held, note=notes, note_of=(*line.note_of, *held.note_of))
    for number, excerpt in enumerate(excerpts):
        if number not in taken:
            yield excerpt


def _holds(excerpt: Excerpt, line: Excerpt) -> bool:
    same = excerpt.message.id == line.message.id
    return same and excerpt.start <= line.start and line.end <= excerpt.end


def _kin(question: str) -> list[str]:
    """Words of the same matters as those of the question."""
    asked = set(lexical_terms(question))
    found: list[str] = []
    for group in word_groups("kin"):
        words = [word for word in group if set(lexical_terms(word)[-1:]) & asked]
        if words:
            found += [word for word in group if word not in words]
    return found
