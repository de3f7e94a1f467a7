"""Conversations, turns, summaries and settings in a database: the only truth about chats.

Knows no model, no prompt and no document, only ids of documents. Safe to use from many threads.
A finished turn survives kill -9 and power loss. A deleted chat is overwritten in the database
file, and its write-ahead log emptied unless another program is reading just then.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from chatbot import records, store_branches, store_queries, store_summaries, store_turns
from chatbot.errors import InputError, StoreError
from chatbot.messages import (
    Conversation,
    Message,
    PromptTrace,
    Turn,
)
from chatbot.records import from_json, new_id, now_text, storable, to_json
from chatbot.store_cache import Known, TurnCache
from chatbot.store_database import Database
from chatbot.store_documents import DocumentStore
from chatbot.store_memory import MemoryStore
from chatbot.store_queries import ConversationInfo
from chatbot.store_rows import imported, title_columns
from chatbot.store_runner import runner_lives, runner_name
from chatbot.store_schema import conversations, settings, traces
from chatbot.titles import fold_text, title_from

MAX_SEARCH_CHARACTERS = 1000
__all__ = ["ConversationInfo", "Store"]


class Store(MemoryStore, DocumentStore):
    """One database of conversations. Every method that changes something is one transaction."""

    def __init__(self, location: Path | str) -> None:
        """Open a file (Path) or a database URL (str), making or updating its tables.

        Turns that a dead process left running are marked as interrupted. Raises StoreError.
        """
        self._runner = runner_name()
        self._known = TurnCache()
        self._database = Database(location)
        try:
            self._interrupt_abandoned()
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Mark turns that this store left running as interrupted, and let go of the database."""
        if self._database.closed:
            return
        try:
            with self._database.write() as connection:
                store_turns.interrupt(connection, [self._runner])
        finally:
            self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Conversations

    def create_conversation(
        self,
        title: str = "",
        system_text: str | None = None,
        conversation_id: str | None = None,
    ) -> Conversation:
        """A new, empty conversation. Raises InputError for an id that is taken."""
        now = now_text()
        name = " ".join(title.split())
        new = Conversation(
            conversation_id or new_id(), name, system_text=system_text, created=now, updated=now
        )
        with self._database.write() as connection:
            if store_queries.taken_ids(connection, new):
                raise InputError(f"There is already a conversation {new.id!r}; choose another id.")
            store_queries.insert_conversation(connection, new)
        return self.load(storable(new.id))

    def import_conversation(self, conversation: Conversation) -> Conversation:
        """Store a conversation from outside and return it as stored, at the top of the list.

        Keeps ids of messages, names and times; `store_rows.imported` says what it does not keep.
        """
        with self._database.write() as connection:
            taken = store_queries.taken_ids(connection, conversation)
            new = imported(conversation, taken=taken, now=now_text())
            store_queries.insert_conversation(connection, new)
        return self.load(storable(new.id))

    def list_conversations(self) -> list[ConversationInfo]:
        """All conversations, pinned ones first, then the newest."""
        with self._database.read() as connection:
            return store_queries.list_infos(connection)

    def search_conversations(self, text: str) -> list[ConversationInfo]:
        """Those with `text` in their title or in a message; all for a blank text. In the order of
        `list_conversations`.

        Compares without case, however accents and Hangul are composed.
        """
        needle = fold_text(storable(text.strip()))
        if len(needle) > MAX_SEARCH_CHARACTERS:
            message = f"A search text may have {MAX_SEARCH_CHARACTERS} characters; use fewer words."
            raise InputError(message)
        with self._database.read() as connection:
            return store_queries.list_infos(connection, needle=needle)

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
            return store_turns.last_turns(connection, conversation_id, n_turns, before)

    def load_trace(self, turn_id: str) -> PromptTrace | None:
        """What went into the prompt of a turn; None if the turn has no trace or is not there."""
        with self._database.read() as connection:
            text = connection.scalar(sa.select(traces.c.trace).where(traces.c.turn_id == turn_id))
            return None if text is None else from_json(records.TRACE, text)

    def rename(self, conversation_id: str, title: str) -> None:
        """Give a conversation another title; the next question fills an empty one."""
        with self._database.write() as connection:
            store_queries.update_conversation(connection, conversation_id, title_columns(title))

    def set_system_text(self, conversation_id: str, text: str | None) -> None:
        """Replace the default system text in this chat; None or "" goes back to it."""
        own = storable(text).strip() if text else ""
        with self._database.write() as connection:
            values = {"system_text": own or None}
            store_queries.update_conversation(connection, conversation_id, values)

    def delete(self, conversation_id: str) -> None:
        """Remove a conversation and all that belongs to it; an id that is not there is fine."""
        mine = conversations.c.id == conversation_id
        with self._database.write() as connection:
            connection.execute(sa.delete(conversations).where(mine))
        self._known.forget(conversation_id)
        self._database.empty_log()

    def pin_conversation(self, conversation_id: str, pinned: bool) -> None:
        """Keep a conversation at the top of the list, or no longer."""
        with self._database.write() as connection:
            store_queries.update_conversation(connection, conversation_id, {"pinned": pinned})

    # Turns

    def begin_turn(
        self, conversation_id: str, question: str, *, replacing: str | None = None
    ) -> Turn:
        """Store a question at once, as a running turn at the end of the conversation.

        `replacing` names a turn whose place the new one takes in the same transaction (retry,
        edit). The old one is kept with all later ones, and with their summaries, as a version
        that `switch_version` brings back; not if it is a question without any reply.
        """
        now = now_text()
        asked = Message(new_id(), "user", storable(question), created=now)
        turn = Turn(new_id(), (asked,), finish="running", created=now)
        with self._database.write() as connection:
            head = store_queries.lock_conversation(connection, conversation_id)
            position = None
            if replacing is not None:
                position = store_turns.position_of(connection, conversation_id, replacing)
                keep = not store_branches.is_unanswered(connection, conversation_id, position)
                store_branches.cut(connection, conversation_id, position, keep=keep, now=now)
            store_turns.append_turn(
                connection, conversation_id, turn, runner=self._runner, position=position
            )
            title = {} if head.title else title_columns(title_from(asked.content))
            values = {"updated": now} | title
            store_queries.update_conversation(connection, conversation_id, values)
        return turn

    def finish_turn(self, conversation_id: str, turn: Turn) -> None:
        """Store a reply with its trace in one transaction.

        Raises StoreError if the turn was dropped or its chat deleted meanwhile.
        """
        with self._database.write() as connection:
            if not store_turns.replace_turn(connection, conversation_id, turn):
                message = "The turn was removed while it was being answered; ask again."
                raise StoreError(message)
            values = {"updated": now_text()}
            store_queries.update_conversation(connection, conversation_id, values)
        self._known.forget(conversation_id, turn.id)

    def drop_turns_from(self, conversation_id: str, turn_id: str) -> None:
        """Remove a turn and all later ones for good.

        The summary falls back to the newest version that covers remaining turns only.
        """
        with self._database.write() as connection:
            store_queries.lock_conversation(connection, conversation_id)
            position = store_turns.position_of(connection, conversation_id, turn_id)
            store_branches.cut(connection, conversation_id, position, keep=False, now=now_text())

    # Settings

    def get_setting(self, key: str, default: Any = None) -> Any:
        """A value kept by `set_setting`."""
        with self._database.read() as connection:
            text = connection.scalar(sa.select(settings.c.value).where(settings.c.key == key))
            return default if text is None else from_json(records.ANYTHING, text)

    def set_setting(self, key: str, value: Any) -> None:
        """Keep a value of JSON's kinds under a key."""
        with self._database.write() as connection:
            connection.execute(sa.delete(settings).where(settings.c.key == key))
            connection.execute(sa.insert(settings).values(key=key, value=to_json(value)))

    def _interrupt_abandoned(self) -> None:
        with self._database.read() as connection:
            runners = store_turns.runners(connection)
        dead = [name for name in runners if not runner_lives(name)]
        if dead:
            with self._database.write() as connection:
                store_turns.interrupt(connection, dead)
