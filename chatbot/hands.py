"""What users change in a conversation by hand, other than asking: memory, versions, forgetting.

Knows the order of things only: how a summary changes is in `memory_edits` and `forgetting`, what
is stored in `store_memory`. Nothing here calls a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from chatbot.busy import Busy
from chatbot.engine.base import Engine
from chatbot.errors import InputError
from chatbot.folding import Folding
from chatbot.forgetting import scrubbed, without_facts_of, without_refusals, without_turn
from chatbot.memory_edits import (
    fact_text,
    find_fact,
    own_fact,
    rewritten,
    with_fact,
    with_known_fact,
    without_fact,
)
from chatbot.messages import Conversation, Fact, RollingSummary, Turn
from chatbot.prompting import PromptBuilder
from chatbot.records import storable
from chatbot.store import Store
from chatbot.store_edits import BASE
from chatbot.store_turns import no_such_turn


@dataclass(frozen=True)
class Hands:
    """Edits of conversations. All raise InputError while the conversation is being answered.

    A summary that is being made in the background gives way, and is made anew after the edit.
    """

    store: Store
    engine: Engine
    folding: Folding
    busy: Busy
    builder: Callable[[], PromptBuilder]
    cap_tokens: int
    """Most tokens of a summary, and of the facts that always stay."""

    def edit_summary(self, conversation_id: str, text: str) -> None:
        text = storable(text).strip()
        tokens = self.builder().encoder.count(text)
        if tokens > self.cap_tokens:
            raise InputError(
                f"The summary has {tokens} tokens and may have {self.cap_tokens}; "
                "shorten it, or allow more in the settings."
            )
        with self._changing(conversation_id):
            old = self.store.load(conversation_id).summary or BASE
            self.store.put_summary(conversation_id, rewritten(old, text, tokens))

    def add_fact(self, conversation_id: str, text: str) -> Fact:
        fact = own_fact(text)
        with self._changing(conversation_id):
            self._put(conversation_id, fact, everywhere=True)
        return fact

    def edit_fact(self, conversation_id: str, fact_id: str, text: str) -> Fact:
        with self._changing(conversation_id):
            return self._change(conversation_id, fact_id, text=fact_text(text), edited=True)

    def pin_fact(self, conversation_id: str, fact_id: str, pinned: bool) -> Fact:
        with self._changing(conversation_id):
            return self._change(conversation_id, fact_id, pinned=pinned)

    def delete_fact(self, conversation_id: str, fact_id: str) -> None:
        with self._changing(conversation_id):
            find_fact(self.store.load(conversation_id).summary, fact_id)

            def change(summary: RollingSummary) -> RollingSummary:
                return without_fact(summary, fact_id)

            self.store.change_summaries(conversation_id, change, change)

    def forget_turn(self, conversation_id: str, turn_id: str) -> frozenset[str]:
        """Names of documents that only it was attached as; nothing else of it is left, in any
        summary, trace, source or cache."""
        with self._changing(conversation_id):
            conversation = self.store.load(conversation_id)
            turn = _find_turn(conversation, turn_id)

            def scrub(trace: dict[str, Any], summaries: bool) -> dict[str, Any]:
                return scrubbed(trace, turn.message_ids, summaries=summaries)

            gone = self.store.forget_turn(
                conversation_id,
                turn_id,
                change=lambda summary: without_facts_of(summary, turn),
                scrub=scrub,
                scrub_notices=without_refusals,
                rebuilt=self._rebuilt(conversation, turn),
            )
            self._forget_caches(conversation_id)
        return gone

    def switch_version(self, conversation_id: str, version_id: str) -> None:
        with self._changing(conversation_id):
            self.store.switch_version(conversation_id, version_id)
            self._forget_caches(conversation_id)

    @contextmanager
    def _changing(self, conversation_id: str) -> Iterator[None]:
        with self.busy.edit(conversation_id):
            # Else a summary of what was there before would come after the edit, and undo it.
            self.folding.cancel(conversation_id)
            yield
        self.folding.schedule(conversation_id)

    def _change(self, conversation_id: str, fact_id: str, **values: Any) -> Fact:
        old = find_fact(self.store.load(conversation_id).summary, fact_id)
        fact = replace(old, **values)
        self._put(conversation_id, fact, everywhere=not old.turn_id)
        return fact

    def _put(self, conversation_id: str, fact: Fact, *, everywhere: bool) -> None:
        """Store a fact. In branches, which may lack its turn, only in the place of an old one."""
        summary = with_fact(self.store.load(conversation_id).summary or BASE, fact)
        lines = "\n".join(f"- {f.text}" for f in summary.facts if f.pinned or f.edited)
        tokens = self.builder().encoder.count(lines)
        if tokens > self.cap_tokens and (fact.pinned or fact.edited):
            raise InputError(
                f"The facts that always stay would have {tokens} tokens and may have "
                f"{self.cap_tokens}; delete or unpin others first."
            )
        elsewhere = with_fact if everywhere else with_known_fact
        self.store.change_summaries(
            conversation_id,
            lambda summary: with_fact(summary, fact),
            lambda summary: elsewhere(summary, fact),
        )

    def _rebuilt(self, conversation: Conversation, turn: Turn) -> RollingSummary | None:
        builder = self.builder()
        return without_turn(
            conversation,
            turn,
            older=self.store.load(conversation.id, before=turn.id).summary,
            cap_tokens=self.cap_tokens,
            count_tokens=builder.encoder.count,
            language=builder.language_of(conversation, ""),
        )

    def _forget_caches(self, conversation_id: str) -> None:
        self.builder().keep_only(self.store.load(conversation_id))
        self.engine.forget(conversation_id)


def _find_turn(conversation: Conversation, turn_id: str) -> Turn:
    for turn in conversation.turns:
        if turn.id == turn_id:
            return turn
    raise InputError(no_such_turn(turn_id))
