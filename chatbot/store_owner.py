"""Whose conversations a connection sees; every statement about one by its id asks here."""

from __future__ import annotations

import sqlalchemy as sa

from chatbot.store_schema import LOCAL_OWNER, OWNER_OPTION, conversations


def owner_of(connection: sa.Connection) -> str:
    """The owner that a connection acts for."""
    return str(connection.get_execution_options().get(OWNER_OPTION, LOCAL_OWNER))


def is_mine(connection: sa.Connection) -> sa.ColumnElement[bool]:
    """The condition that a row of `conversations` belongs to the owner."""
    return conversations.c.owner == owner_of(connection)


def owns(connection: sa.Connection, conversation_id: str) -> bool:
    """Whether there is such a conversation, or branch, of the owner."""
    here = sa.and_(conversations.c.id == conversation_id, is_mine(connection))
    return connection.scalar(sa.select(conversations.c.id).where(here)) is not None
