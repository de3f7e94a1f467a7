"""The part of the store about conversations as wholes: made, listed, found, named, deleted."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from chatbot import store_queries
from chatbot.errors import IdTakenError, InputError
from chatbot.messages import Conversation
from chatbot.records import new_id, now_text, storable
from chatbot.store_changes import id_taken, own_text
from chatbot.store_owner import is_mine
from chatbot.store_queries import ConversationInfo
from chatbot.store_reading import ReadingStore
from chatbot.store_rows import check_id, imported, title_columns
from chatbot.store_schema import conversations
from chatbot.titles import fold_text

MAX_SEARCH_CHARACTERS = 1000


class ConversationStore(ReadingStore):
    """What `Store` has about conversations, but for their turns."""

    def create_conversation(
        self,
        title: str = "",
        system_text: str | None = None,
        conversation_id: str | None = None,
    ) -> Conversation:
        """A new, empty conversation. Raises IdTakenError for an id that is taken."""
        now = now_text()
        name = " ".join(title.split())
        new = Conversation(
            conversation_id or new_id(), name, system_text=system_text, created=now, updated=now
        )
        taken = id_taken(new.id)
        check_id(new.id)
        with self._database.write() as connection:
            if store_queries.is_taken(connection, new.id):
                raise IdTakenError(taken)
            try:
                store_queries.insert_conversation(connection, new)
            except IntegrityError as error:  # Another process was quicker.
                raise IdTakenError(taken) from error
        return self.load(storable(new.id))

    def import_conversation(self, conversation: Conversation) -> Conversation:
        """Store a conversation from outside and return it as stored, at the top of the list.

        Keeps ids of messages, names and times; `store_rows.imported` says what it does not keep.
        """
        with self._database.write() as connection:
            if store_queries.is_taken(connection, conversation.id):
                conversation = replace(conversation, id="")
            taken = store_queries.taken_turn_ids(connection, conversation)
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

    def rename(self, conversation_id: str, title: str) -> None:
        """Give a conversation another title; the next question fills an empty one."""
        with self._database.write() as connection:
            store_queries.update_conversation(connection, conversation_id, title_columns(title))

    def set_system_text(self, conversation_id: str, text: str | None) -> None:
        """Replace the default system text in this chat; None or "" goes back to it."""
        with self._database.write() as connection:
            values = {"system_text": own_text(text)}
            store_queries.update_conversation(connection, conversation_id, values)

    def delete(self, conversation_id: str) -> None:
        """Remove a conversation and all that belongs to it; an id that is not there is fine."""
        mine = conversations.c.id == conversation_id
        with self._database.write() as connection:
            connection.execute(sa.delete(conversations).where(mine, is_mine(connection)))
        self._known.forget(conversation_id)
        self._database.empty_log()

    def drop_if_empty(self, conversation_id: str) -> bool:
        """Remove a conversation that was only begun: nothing was said in it, set or named.

        Whether it was one.
        """
        with self._database.write() as connection:
            if not store_queries.is_only_begun(connection, conversation_id):
                return False
            connection.execute(
                sa.delete(conversations).where(conversations.c.id == conversation_id)
            )
        return True

    def pin_conversation(self, conversation_id: str, pinned: bool) -> None:
        """Keep a conversation at the top of the list, or no longer."""
        with self._database.write() as connection:
            store_queries.update_conversation(connection, conversation_id, {"pinned": pinned})
