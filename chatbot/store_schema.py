"""The tables of the conversation database as they are now. Knows no engine and no statement."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from chatbot.records import storable

LOCAL_OWNER = "local"
"""Whose conversations are where there are no people."""
OWNER_OPTION = "chatbot_owner"
"""The option of a connection that says whose conversations its statements see."""


class StoredText(sa.TypeDecorator[str]):
    """A text without what PostgreSQL cannot hold, also in comparisons: so both find the same."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else storable(value)


class _Place(FunctionElement[int]):
    """Where one text first occurs in another, counted from 1; 0 for nowhere."""

    type = sa.Integer()
    inherit_cache = True


@compiles(_Place)
def _place_elsewhere(element: _Place, compiler: SQLCompiler, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"


@compiles(_Place, "sqlite")
def _place_in_sqlite(element: _Place, compiler: SQLCompiler, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


def holds(column: sa.Column[str], text: str) -> sa.ColumnElement[bool]:
    """Whether a text occurs in a column, letter for letter.

    LIKE passes over the case of some letters in one database and of none in another.
    """
    return _Place(column, sa.literal(text, StoredText)) > 0


metadata = sa.MetaData()

_CONVERSATION = "conversations.id"

conversations = sa.Table(
    "conversations",
    metadata,
    sa.Column("id", StoredText, primary_key=True),
    sa.Column("owner", StoredText, nullable=False, server_default=LOCAL_OWNER),
    sa.Column("title", StoredText, nullable=False),
    sa.Column("folded_title", StoredText, nullable=False),
    sa.Column("system_text", StoredText),
    sa.Column("created", StoredText, nullable=False),
    sa.Column("updated", StoredText, nullable=False),
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
    # A branch holds turns that were cut off from another conversation by an edit or a retry: those
    # from `fork_position` on, with their summaries. It is in no list.
    sa.Column("branch_of", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE")),
    sa.Column("fork_position", sa.Integer),
    # Counts changes of turns that were finished, so that other processes read them anew.
    sa.Column("edits", sa.Integer, nullable=False, server_default="0"),
    sa.Index("conversations_by_time", "owner", "updated"),
    sa.Index("conversations_by_trunk", "branch_of", "fork_position"),
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", StoredText, primary_key=True),
    sa.Column("conversation_id", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("finish", StoredText, nullable=False),
    sa.Column("created", StoredText, nullable=False),
    # Lists of messages and the like are JSON texts; NULL stands for an empty one.
    sa.Column("user_messages", StoredText),
    sa.Column("assistant_messages", StoredText),
    sa.Column("tokenizer_name", StoredText),
    sa.Column("reply_token_ids", StoredText),
    sa.Column("usage", StoredText),
    sa.Column("citations", StoredText),
    sa.Column("notices", StoredText),
    sa.Column("unsupported", StoredText),
    sa.Column("best_sentence", StoredText),
    # Who is making the reply right now; NULL once the turn is finished.
    sa.Column("runner", StoredText),
    # All messages as search compares them. Last, so that loading a turn does not read it.
    sa.Column("folded_text", StoredText, nullable=False),
    sa.UniqueConstraint("conversation_id", "position", name="turns_in_order"),
    sa.Index("turns_by_finish", "finish"),
    sa.Index("turns_in_brief", "conversation_id", "position", "id", "finish"),
)

# Apart from their turns, since one trace is as large as a whole prompt.
traces = sa.Table(
    "traces",
    metadata,
    sa.Column("turn_id", sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("trace", StoredText, nullable=False),
)

# Every version is kept. The current one is the newest that is valid; a version is invalid once a
# turn that it covers has been dropped, for good, even if as many turns follow again.
summaries = sa.Table(
    "summaries",
    metadata,
    sa.Column(
        "conversation_id", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("covers", sa.Integer, nullable=False),
    sa.Column("valid", sa.Boolean, nullable=False),
    sa.Column("text", StoredText, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("facts", StoredText),
    sa.Column("origin", StoredText, nullable=False),
    sa.Column("created", StoredText, nullable=False),
    # What the user wrote by hand, and ids of facts that the user deleted.
    sa.Column("kept", StoredText, nullable=False, server_default=""),
    sa.Column("deleted", StoredText),
)

# Each attempt to make a summary, with its reason.
fold_decisions = sa.Table(
    "fold_decisions",
    metadata,
    sa.Column(
        "conversation_id", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("covers", sa.Integer, nullable=False),
    sa.Column("decision", StoredText, nullable=False),
)

conversation_documents = sa.Table(
    "conversation_documents",
    metadata,
    sa.Column(
        "conversation_id", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("document_id", StoredText, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Index("conversation_documents_by_document", "document_id"),
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("key", StoredText, primary_key=True),
    sa.Column("value", StoredText, nullable=False),
)

migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("name", StoredText, primary_key=True),
    sa.Column("applied", StoredText, nullable=False),
)

# Processes that share the database, by the name with which their turns begin. One that has died
# no longer puts off the end of its time, in milliseconds since 1970 by the database's clock.
runners = sa.Table(
    "runners",
    metadata,
    sa.Column("name", StoredText, primary_key=True),
    sa.Column("lives_until", sa.BigInteger, nullable=False),
)

# Work that only one process at a time may do, such as folding a conversation.
claims = sa.Table(
    "claims",
    metadata,
    sa.Column("kind", StoredText, primary_key=True),
    sa.Column("name", StoredText, primary_key=True),
    sa.Column("runner", StoredText, nullable=False),
    sa.Column("taken", StoredText, nullable=False),
)
