"""What comes back of older turns for a message, and what share of the prompt it gets.

Decides, together with `chatbot.need`; searches in the indexes of recall. Calls no model but the
one that makes vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chatbot.budget import ContextBudget
from chatbot.excerpts import Excerpt, several_voices
from chatbot.messages import Conversation
from chatbot.need import Need, is_weak, need
from chatbot.query import leans_on_earlier_turns
from chatbot.recall_indexes import RecallIndexes
from chatbot.recall_vectors import RecallVectors
from chatbot.settings import Settings
from chatbot.shorter_excerpts import LEAST_TOKENS, shortened
from retrieval.types import CountTokens
from retrieval.words import folded

EXCERPT_TOKENS = 4000
"""Of excerpts, at most so many tokens are looked at, however large the window is."""
MOVED_SHARE = 0.9
"""Of the share of older turns, what recall gets when the question stands alone."""
SOME_FACTOR = 0.5
"""Of its share, what recall gets for a message that only touches on older turns."""
WAITING_SHARE = 0.25
"""Of what a fold takes away, by how much folding may be behind: a summary that was refused is asked
for once more after the next turn."""
VOICES_TURNS = 100
"""Whether several people talk shows in so many of the newest turns."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What came back, best first, and the budget that suits the message."""

    budget: ContextBudget
    excerpts: tuple[Excerpt, ...] = ()
    standing: tuple[Excerpt, ...] = ()
    """Standing instructions of folded turns, for the front of the prompt."""


class Recaller:
    """Recalls for all conversations. Safe to use from several threads."""

    def __init__(
        self, settings: Settings, count_tokens: CountTokens, vectors: RecallVectors | None = None
    ) -> None:
        self._settings = settings
        self._count_tokens = count_tokens
        self._indexes = RecallIndexes(count_tokens, vectors)

    def change_settings(self, settings: Settings) -> None:
        """Recall with others from now on."""
        self._settings = settings

    def recalled(
        self,
        conversation: Conversation,
        message: str,
        query: str,
        *,
        budget: ContextBudget,
        unfolded_tokens: int,
        has_passages: bool,
    ) -> Recalled:
        """Who gets how much for this message, and the excerpts.

        As long as folding keeps up and no passages ride along, all turns since the last fold
        stay, so that the front of the prompt, and with it the cache, is the same from turn to
        turn; older turns come back only as far as the message needs them. Otherwise a message
        that stands alone needs little of the last turns. So it is in transcripts, whose end says
        no more about the question than any other stretch of them.
        """
        if not conversation.turns:
            return Recalled(budget)
        s = self._settings
        talk = several_voices(
            message
            for turn in conversation.turns[-VOICES_TURNS:]
            for message in (*turn.user, *turn.assistant)
        )
        most = s.fold_high + WAITING_SHARE * (s.fold_high - s.fold_low)
        kept_up = unfolded_tokens <= most * budget.window_tokens
        if s.summary != "off" and kept_up and not has_passages and not talk:
            pinned = replace(budget, pinned_turns=len(conversation.turns))
            return self._beside(conversation, message, query, pinned)
        return self._instead(conversation, message, query, budget, is_talk=talk)

    def embed(
        self,
        conversation: Conversation,
        *,
        stop: threading.Event | None = None,
        limit_tokens: int | None = None,
    ) -> None:
        """Make the vectors that are missing; see `RecallIndexes.embed`."""
        self._indexes.embed(conversation, stop=stop, limit_tokens=limit_tokens)

    def keep_only(self, conversation: Conversation) -> None:
        """Drop what is known of turns that are no longer in the conversation."""
        self._indexes.keep_only(conversation)

    def forget(self, conversation_id: str) -> None:
        """Drop what is known of a conversation, vectors included."""
        self._indexes.forget(conversation_id)

    def _beside(
        self, conversation: Conversation, message: str, query: str, budget: ContextBudget
    ) -> Recalled:
        """Excerpts of folded turns. What is recalled beside whole turns is read anew each time,
        so it keeps to its share even where there is room for more."""
        covered, s = _covered(conversation), self._settings
        if not covered or s.recall_share <= 0:
            return Recalled(budget)
        index = self._indexes.of(conversation)
        standing = tuple(_not_in_facts(index.instructions(covered), conversation))
        wanted = need(message, index.match(message, query, covered))
        if wanted == "none":
            return Recalled(budget, standing=standing)
        found = index.search(query, question=message, limit_tokens=_looked_at(budget))
        shown = {(e.message.id, e.start) for e in standing}
        old = [e for e in found if e.position < covered and (e.message.id, e.start) not in shown]
        limit = int(self._share(wanted) * budget.limit_tokens)
        return Recalled(budget, tuple(self._within(old, limit, query)), standing)

    def _within(self, excerpts: Sequence[Excerpt], limit: int, query: str) -> list[Excerpt]:
        return within(excerpts, limit, query, self._count_tokens)

    def _share(self, wanted: Need) -> float:
        s = self._settings
        return s.recall_share_asked if wanted == "much" else SOME_FACTOR * s.recall_share

    def _instead(
        self,
        conversation: Conversation,
        message: str,
        query: str,
        budget: ContextBudget,
        *,
        is_talk: bool,
    ) -> Recalled:
        """Excerpts that compete with whole turns for the room."""
        leans = leans_on_earlier_turns(message)
        if self._settings.recall_share <= 0:
            return Recalled(budget if leans else for_standalone(budget))
        index = self._indexes.of(conversation)
        found = index.search(query, question=message, limit_tokens=_looked_at(budget))
        match = index.match(message, query, len(conversation.turns))
        if not is_talk and is_weak(message, match):
            share = self._settings.recall_share
            limit = int(share * budget.limit_tokens)
            return Recalled(budget, tuple(self._within(found, limit, query)))
        return Recalled(budget if leans else for_standalone(budget), tuple(found))


def within(
    excerpts: Sequence[Excerpt], limit_tokens: int, query: str, count_tokens: CountTokens
) -> list[Excerpt]:
    """The best excerpts, up to `limit_tokens` of text in all, and of the next one the part that
    matched, where there is room for it. The best of all is never left out for being long."""
    kept: list[Excerpt] = []
    for excerpt in excerpts:
        room = limit_tokens - sum(e.tokens for e in kept)
        if excerpt.tokens <= room:
            kept.append(excerpt)
            continue
        part = _part_within(excerpt, room, query, count_tokens)
        if part is not None:
            kept.append(part)
        if kept:
            break
    return kept


def _part_within(
    excerpt: Excerpt, room: int, query: str, count_tokens: CountTokens
) -> Excerpt | None:
    def fits(part: Excerpt) -> bool:
        return count_tokens(part.text) <= room

    part = shortened(excerpt, query, fits) if room >= LEAST_TOKENS else None
    return part and replace(part, tokens=count_tokens(part.text))


def for_standalone(budget: ContextBudget) -> ContextBudget:
    """The budget of a question that does not lean on the last turns: most of what they would
    get goes to recalled excerpts, which come from the last turns as well if they match."""
    turns_share = max(1.0 - budget.passage_share - budget.recall_share, 0.0)
    if budget.recall_share <= 0:
        return budget
    return replace(
        budget,
        recall_share=budget.recall_share + MOVED_SHARE * turns_share,
        min_recent_turns=min(budget.min_recent_turns, 1),
    )


def _covered(conversation: Conversation) -> int:
    return conversation.summary.covers if conversation.summary else 0


def _looked_at(budget: ContextBudget) -> int:
    return min(budget.limit_tokens, EXCERPT_TOKENS)


def _not_in_facts(excerpts: Sequence[Excerpt], conversation: Conversation) -> list[Excerpt]:
    """Without those that the facts beside the summary hold word for word."""
    facts = conversation.summary.facts if conversation.summary else ()
    known = [folded(fact.text) for fact in facts]
    return [e for e in excerpts if not any(folded(e.text) in text for text in known)]
