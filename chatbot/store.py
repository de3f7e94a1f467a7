"""Conversations, turns, summaries and settings in a database: the only truth about chats.

Knows no model, no prompt and no document, only ids of documents. Safe to use from many threads.
A finished turn survives kill -9 and power loss. A deleted chat is overwritten in the database
file; its write-ahead log may hold traces of it until the program ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from chatbot import records, store_queries
from chatbot.errors import InputError, StoreError
from chatbot.messages import (
    Conversation,
    FoldDecision,
    Message,
    PromptTrace,
    RollingSummary,
    Turn,
)
from chatbot.records import from_json, new_id, now_text, storable, to_json
from chatbot.store_database import Database
from chatbot.store_queries import ConversationInfo
from chatbot.store_rows import imported, title_columns
from chatbot.store_runner import runner_lives, runner_name
from chatbot.store_schema import conversation_documents, conversations, settings, traces
from chatbot.titles import fold_text, title_from

MAX_SEARCH_CHARACTERS = 1000
__all__ = ["ConversationInfo", "Store"]


class Store:
    """One database of conversations. Every method that changes something is one transaction."""

    def __init__(self, location: Path | str) -> None:
        """Open a file (Path) or a database URL (str), making or updating its tables.

        Turns that a dead process left running are marked as interrupted. Raises StoreError.
        """
        self._runner = runner_name()
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
                store_queries.interrupt(connection, [self._runner])
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
        """All conversations, newest first."""
        with self._database.read() as connection:
            return store_queries.list_infos(connection)

    def search_conversations(self, text: str) -> list[ConversationInfo]:
        """Those with `text` in their title or in a message, newest first; all for a blank text.

        Compares without case, however accents and Hangul are composed.
        """
        needle = fold_text(storable(text.strip()))
        if len(needle) > MAX_SEARCH_CHARACTERS:
            message = f"A search text may have {MAX_SEARCH_CHARACTERS} characters; use fewer words."
            raise InputError(message)
        with self._database.read() as connection:
            return store_queries.list_infos(connection, needle=needle)

    def load(self, conversation_id: str) -> Conversation:
        """A conversation with all its turns, but without their traces (`load_trace`).

        Raises InputError if there is none of this id.
        """
        with self._database.read() as connection:
            return store_queries.load_conversation(connection, conversation_id)

    def load_trace(self, turn_id: str) -> PromptTrace | None:
        """What went into the prompt of a turn; None if the turn has no trace or is not there."""
        with self._database.read() as connection:
            text = connection.scalar(sa.select(traces.c.trace).where(traces.c.turn_id == turn_id))
            return None if text is None else from_json(records.TRACE, text)

    def rename(self, conversation_id: str, title: str) -> None:
        """Give a conversation another title; the next question fills an empty one."""
        with self._database.write() as connection:
            store_queries.update_conversation(connection, conversation_id, title_columns(title))

    def delete(self, conversation_id: str) -> None:
        """Remove a conversation and all that belongs to it; an id that is not there is fine."""
        mine = conversations.c.id == conversation_id
        with self._database.write() as connection:
            connection.execute(sa.delete(conversations).where(mine))

    # Documents in use

    def set_documents(self, conversation_id: str, document_ids: Sequence[str]) -> None:
        """Let questions of this chat use exactly these documents, in this order."""
        with self._database.write() as connection:
            store_queries.lock_conversation(connection, conversation_id)
            store_queries.put_documents(connection, conversation_id, document_ids)

    def remove_document_everywhere(self, document_id: str) -> None:
        """Forget a document in all conversations, after it was deleted from the library."""
        table = conversation_documents
        with self._database.write() as connection:
            connection.execute(sa.delete(table).where(table.c.document_id == document_id))

    # Turns and summaries

    def begin_turn(
        self, conversation_id: str, question: str, *, replacing: str | None = None
    ) -> Turn:
        """Store a question at once, as a running turn at the end of the conversation.

        `replacing` names a turn that is dropped in the same transaction, with all later ones
        (retry, edit): at no moment is neither question stored.
        """
        now = now_text()
        asked = Message(new_id(), "user", storable(question), created=now)
        turn = Turn(new_id(), (asked,), finish="running", created=now)
        with self._database.write() as connection:
            head = store_queries.lock_conversation(connection, conversation_id)
            if replacing is not None:
                store_queries.drop_turns(connection, conversation_id, replacing)
            store_queries.append_turn(connection, conversation_id, turn, runner=self._runner)
            title = {} if head.title else title_columns(title_from(asked.content))
            values = {"updated": now} | title
            store_queries.update_conversation(connection, conversation_id, values)
        return turn

    def finish_turn(self, conversation_id: str, turn: Turn) -> None:
        """Store a reply with its trace in one transaction.

        Raises StoreError if the turn was dropped or its chat deleted meanwhile.
        """
        with self._database.write() as connection:
            if not store_queries.replace_turn(connection, conversation_id, turn):
                message = "The turn was removed while it was being answered; ask again."
                raise StoreError(message)
            values = {"updated": now_text()}
            store_queries.update_conversation(connection, conversation_id, values)

    def drop_turns_from(self, conversation_id: str, turn_id: str) -> None:
        """Remove a turn and all later ones.

        The summary falls back to the newest version that covers remaining turns only.
        """
        with self._database.write() as connection:
            store_queries.lock_conversation(connection, conversation_id)
            store_queries.drop_turns(connection, conversation_id, turn_id)

    def save_summary(
        self, conversation_id: str, summary: RollingSummary, *, last_turn_id: str | None = None
    ) -> bool:
        """Make this the current summary; older versions stay stored.

        `last_turn_id` is the newest turn that it stands for. False, with nothing stored, if the
        conversation no longer has these turns: they may be dropped while a summary is made.
        """
        with self._database.write() as connection:
            last = store_queries.turn_at(connection, conversation_id, summary.covers - 1)
            if last is None or last_turn_id not in (None, last):
                return False
            store_queries.lock_conversation(connection, conversation_id)
            store_queries.insert_summary(connection, conversation_id, summary)
        return True

    def summary_versions(self, conversation_id: str) -> list[RollingSummary]:
        """All versions ever stored, oldest first, also those that no longer hold."""
        with self._database.read() as connection:
            return store_queries.summary_versions(connection, conversation_id)

    def add_fold_decisions(self, conversation_id: str, decisions: Sequence[FoldDecision]) -> None:
        """Keep what was tried when a summary was made. Nothing happens if the chat is gone."""
        with self._database.write() as connection:
            store_queries.insert_fold_decisions(connection, conversation_id, decisions)

    def fold_decisions(self, conversation_id: str) -> tuple[FoldDecision, ...]:
        """All attempts to make a summary of this conversation, oldest first."""
        with self._database.read() as connection:
            return store_queries.fold_decisions_of(connection, conversation_id)

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
            runners = store_queries.runners(connection)
        dead = [name for name in runners if not runner_lives(name)]
        if dead:
            with self._database.write() as connection:
                store_queries.interrupt(connection, dead)
