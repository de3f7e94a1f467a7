"""Conversations, turns, summaries and settings in a database: the only truth about chats.

Knows no model, no prompt and no document, only ids of documents. Safe to use from many threads,
and from several processes. A finished turn survives kill -9 and power loss. A deleted chat is
overwritten in the database file, and its write-ahead log emptied unless another program is reading
just then; what PostgreSQL keeps of it until its next VACUUM is PostgreSQL's matter.
"""

from __future__ import annotations

import copy
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from chatbot import records, store_branches, store_queries, store_turns
from chatbot.errors import InputError, TurnGoneError
from chatbot.messages import Conversation, Message, Turn
from chatbot.records import from_json, new_id, now_text, storable, to_json
from chatbot.store_cache import TurnCache
from chatbot.store_changes import NOTHING, Changes, lock_changed
from chatbot.store_claims import ClaimStore, claimants, release_claims
from chatbot.store_conversations import ConversationStore
from chatbot.store_database import Database
from chatbot.store_documents import DocumentStore
from chatbot.store_edits import BEING_ANSWERED
from chatbot.store_leases import LEASE_S, LeasedLife, forget_dead
from chatbot.store_memory import MemoryStore
from chatbot.store_place import Location
from chatbot.store_postgres import may_sweep
from chatbot.store_queries import ConversationInfo
from chatbot.store_rows import title_columns
from chatbot.store_runner import Life, ProcessLife
from chatbot.store_schema import settings
from chatbot.titles import title_from

__all__ = ["ConversationInfo", "Store"]

_SETTING = sa.text(
    "INSERT INTO settings (key, value) VALUES (:key, :value) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class Store(ConversationStore, MemoryStore, DocumentStore, ClaimStore):
    """One database of conversations. Every method that changes something is one transaction."""

    def __init__(self, location: Location, *, lease_s: float = LEASE_S) -> None:
        """Open a file (Path) or a database URL (str), making or updating its tables.

        Turns that a dead process left running are marked as interrupted; in PostgreSQL also later
        on, `lease_s` after its death. Raises StoreError.
        """
        self._known = TurnCache()
        self._database = Database(location)
        self._is_whole = True
        self._left = set()
        try:
            self._life = self._begin_life(lease_s)
            self._runner = self._life.name()
            self._interrupt_abandoned()
        except BaseException:
            self._database.close()
            raise

    @property
    def is_shared(self) -> bool:
        """Whether processes of other machines may use the database as well."""
        return self._database.is_shared

    def for_owner(self, owner: str) -> Store:
        """The conversations of somebody else in the same database; nothing of others is seen.

        To be closed by itself; it ends with this store at the latest.
        """
        view = copy.copy(self)
        view._known = TurnCache()
        view._database = self._database.for_owner(owner)
        view._runner = self._life.name()
        view._is_whole = False
        return view

    def rest(self) -> None:
        """Let go of what is read or opened again at need; nothing that is in use."""
        self._known.clear()
        self._database.rest()

    def close(self) -> None:
        """Mark turns that this store left running as interrupted, and let go of the database."""
        if self._database.closed:
            return
        try:
            with self._database.write() as connection:
                store_turns.interrupt(connection, [self._runner])
                release_claims(connection, [self._runner])
        finally:
            if self._is_whole:
                self._life.close()
            self._database.close()

    def check(self) -> None:
        """Raises StoreError unless the database answers."""
        with self._database.read() as connection:
            connection.scalar(sa.select(sa.literal(1)))

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Turns

    def load(self, conversation_id: str, *, before: str | None = None) -> Conversation:
        """`ReadingStore.load`; a reply whose process has died shows as interrupted."""
        found = super().load(conversation_id, before=before)
        is_running = bool(found.turns) and found.turns[-1].finish == "running"
        if is_running and self._free(conversation_id):
            return super().load(conversation_id, before=before)
        return found

    def begin_turn(
        self,
        conversation_id: str,
        question: str,
        *,
        replacing: str | None = None,
        alone: bool = False,
        changes: Changes = NOTHING,
    ) -> Turn:
        """Store a question at once, as a running turn at the end of the conversation.

        `replacing` names a turn whose place the new one takes in the same transaction (retry,
        edit). The old one is kept with all later ones, and with their summaries, as a version
        that `switch_version` brings back; not if it is a question without any reply. With `alone`
        raises InputError while another process is making a reply in this conversation. `changes`
        are stored with the question, or neither is.
        """
        now = now_text()
        asked = Message(new_id(), "user", storable(question), created=now)
        turn = Turn(new_id(), (asked,), finish="running", created=now)
        with self._database.write() as connection:
            head = lock_changed(connection, conversation_id, changes)
            if alone:
                self._refuse_others(connection, conversation_id)
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

        Raises TurnGoneError if the turn was dropped or its chat deleted meanwhile.
        """
        removed = "The turn was removed while it was being answered; ask again."
        with self._database.write() as connection:
            try:
                head = store_queries.lock_conversation(connection, conversation_id)
            except InputError as error:
                raise TurnGoneError(removed) from error
            again = not store_turns.is_running(connection, turn.id)
            if not store_turns.replace_turn(connection, conversation_id, turn):
                raise TurnGoneError(removed)
            values = {"updated": now_text(), "edits": head.edits + again}
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
            connection.execute(_SETTING, {"key": key, "value": to_json(value)})

    # Who else is there

    def _begin_life(self, lease_s: float) -> Life:
        if self._database.is_shared:
            return LeasedLife(self._database, on_beat=self._on_beat, lease_s=lease_s)
        return ProcessLife()

    def _on_beat(self) -> None:
        self._release_left()
        self._interrupt_abandoned()

    def _interrupt_abandoned(self) -> None:
        with self._database.read() as connection:
            dead = self._dead(connection)
        if not dead:
            return
        with self._database.write() as connection:
            if self._database.is_shared and not may_sweep(connection):
                return
            dead = self._dead(connection)
            store_turns.interrupt(connection, dead)
            release_claims(connection, dead)
            if self._database.is_shared:
                forget_dead(connection)

    def _dead(self, connection: sa.Connection) -> list[str]:
        busy = {*store_turns.runners(connection), *claimants(connection)}
        return self._life.dead(connection, sorted(busy))

    def _free(self, conversation_id: str) -> bool:
        """Interrupt what dead processes left running in a conversation; whether there was any."""
        with self._database.read() as connection:
            others = store_turns.others_running(connection, conversation_id, self._runner)
            dead = self._life.dead(connection, others) if others else []
        if dead:
            with self._database.write() as connection:
                store_turns.interrupt(connection, dead)
        return bool(dead)

    def _refuse_others(self, connection: sa.Connection, conversation_id: str) -> None:
        # One that died just now as well: whoever asks has not seen yet that it was cut off.
        if store_turns.others_running(connection, conversation_id, self._runner):
            raise InputError(BEING_ANSWERED)
