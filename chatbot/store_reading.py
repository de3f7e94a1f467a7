"""The part of the store that reads conversations and their turns. Changes nothing."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from chatbot import records, store_queries, store_summaries, store_turns
from chatbot.messages import Conversation, PromptTrace, Turn
from chatbot.records import from_json
from chatbot.store_cache import Known, TurnCache
from chatbot.store_database import Database
from chatbot.store_owner import is_mine, owns
from chatbot.store_schema import conversations, traces, turns


class ReadingStore:
    """What `Store` reads of conversations. Nothing of another owner is found by any id."""

    _database: Database
    _known: TurnCache

    def load(self, conversation_id: str, *, before: str | None = None) -> Conversation:
        """A conversation with all its turns, but without their traces (`load_trace`).

        `before` names a turn: then as it was before that one, with the summary that held then.
        Raises InputError if there is none of this id. Turns read before are not parsed again.
        """
        known, changes = self._known.get(conversation_id)
        with self._database.read() as connection:
            found, known = store_queries.load_conversation(connection, conversation_id, known)
            if before is not None:
                found = store_queries.rolled_back(connection, found, before)
        self._known.keep(conversation_id, known, changes)
        return found

    def load_whole(self, conversation_id: str) -> Conversation:
        """A conversation with the traces of its turns and the decisions of its folds."""
        with self._database.read() as connection:
            found, _ = store_queries.load_conversation(connection, conversation_id, Known())
            of_turns = store_turns.traces_of(connection, conversation_id)
            decisions = store_summaries.fold_decisions_of(connection, conversation_id)
        whole = tuple(replace(turn, trace=of_turns.get(turn.id)) for turn in found.turns)
        return replace(found, turns=whole, decisions=decisions)

    def last_turns(
        self, conversation_id: str, n_turns: int, *, before: str | None = None
    ) -> tuple[Turn, ...]:
        """The newest turns, or those just before one of them, oldest first; quick in any chat."""
        with self._database.read() as connection:
            if not owns(connection, conversation_id):
                return ()
            return store_turns.last_turns(connection, conversation_id, n_turns, before)

    def load_trace(self, turn_id: str) -> PromptTrace | None:
        """What went into the prompt of a turn; None if the turn has no trace or is not there."""
        with self._database.read() as connection:
            mine = (
                sa.select(traces.c.trace)
                .join(turns, turns.c.id == traces.c.turn_id)
                .join(conversations, conversations.c.id == turns.c.conversation_id)
            )
            here = sa.and_(traces.c.turn_id == turn_id, is_mine(connection))
            text = connection.scalar(mine.where(here))
            return None if text is None else from_json(records.TRACE, text)
