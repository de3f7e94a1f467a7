"""The part of the store about documents: which chat may use which. Knows only their ids."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from chatbot import store_queries
from chatbot.store_branches import family
from chatbot.store_database import Database
from chatbot.store_owner import is_mine, owns
from chatbot.store_schema import conversation_documents, conversations
from chatbot.store_sources import attached_names, forget_sources


class DocumentStore:
    """What `Store` has about documents."""

    _database: Database

    def set_documents(self, conversation_id: str, document_ids: Sequence[str]) -> None:
        """Let questions of this chat use exactly these documents, in this order."""
        with self._database.write() as connection:
            store_queries.lock_conversation(connection, conversation_id)
            store_queries.put_documents(connection, conversation_id, document_ids)

    def remove_document_everywhere(self, document_id: str) -> None:
        """Forget a document in all conversations, after it was deleted from the library."""
        table = conversation_documents
        with self._database.write() as connection:
            mine = sa.select(conversations.c.id).where(is_mine(connection))
            here = sa.and_(table.c.document_id == document_id, table.c.conversation_id.in_(mine))
            connection.execute(sa.delete(table).where(here))

    def forget_document(self, document_id: str) -> None:
        """The same, and its text goes from the traces and sources of all conversations."""
        self.remove_document_everywhere(document_id)
        with self._database.write() as connection:
            forget_sources(connection, is_mine(connection), [document_id])
        self._database.empty_log()

    def is_document_used(self, document_id: str) -> bool:
        """Whether questions of any chat may use a document."""
        with self._database.read() as connection:
            return store_queries.is_document_used(connection, document_id)

    def attached_in(self, conversation_id: str) -> frozenset[str]:
        """Names of the documents that messages of a chat and its versions were attached as."""
        with self._database.read() as connection:
            if not owns(connection, conversation_id):
                return frozenset()
            return attached_names(connection, family(connection, conversation_id))

    def is_attached(self, name: str) -> bool:
        """Whether a message of any chat was attached as a document of this name."""
        with self._database.read() as connection:
            return store_queries.is_attached(connection, name)
