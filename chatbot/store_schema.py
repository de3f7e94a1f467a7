"""The tables of the conversation database as they are now. Knows no engine and no statement."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

_CONVERSATION = "conversations.id"

conversations = sa.Table(
    "conversations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False, server_default="local"),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("folded_title", sa.Text, nullable=False),
    sa.Column("system_text", sa.Text),
    sa.Column("created", sa.Text, nullable=False),
    sa.Column("updated", sa.Text, nullable=False),
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
    # A branch holds turns that were cut off from another conversation by an edit or a retry: those
    # from `fork_position` on, with their summaries. It is in no list.
    sa.Column("branch_of", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE")),
    sa.Column("fork_position", sa.Integer),
    sa.Index("conversations_by_time", "owner", "updated"),
    sa.Index("conversations_by_trunk", "branch_of", "fork_position"),
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("conversation_id", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("finish", sa.Text, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    # Lists of messages and the like are JSON texts; NULL stands for an empty one.
    sa.Column("user_messages", sa.Text),
    sa.Column("assistant_messages", sa.Text),
    sa.Column("tokenizer_name", sa.Text),
    sa.Column("reply_token_ids", sa.Text),
    sa.Column("usage", sa.Text),
    sa.Column("citations", sa.Text),
    sa.Column("notices", sa.Text),
    sa.Column("unsupported", sa.Text),
    sa.Column("best_sentence", sa.Text),
    # Who is making the reply right now; NULL once the turn is finished.
    sa.Column("runner", sa.Text),
    # All messages as search compares them. Last, so that loading a turn does not read it.
    sa.Column("folded_text", sa.Text, nullable=False),
    sa.UniqueConstraint("conversation_id", "position", name="turns_in_order"),
    sa.Index("turns_by_finish", "finish"),
    sa.Index("turns_in_brief", "conversation_id", "position", "id", "finish"),
)

# Apart from their turns, since one trace is as large as a whole prompt.
traces = sa.Table(
    "traces",
    metadata,
    sa.Column("turn_id", sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("trace", sa.Text, nullable=False),
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
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("facts", sa.Text),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    # What the user wrote by hand, and ids of facts that the user deleted.
    sa.Column("kept", sa.Text, nullable=False, server_default=""),
    sa.Column("deleted", sa.Text),
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
    sa.Column("decision", sa.Text, nullable=False),
)

conversation_documents = sa.Table(
    "conversation_documents",
    metadata,
    sa.Column(
        "conversation_id", sa.ForeignKey(_CONVERSATION, ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Index("conversation_documents_by_document", "document_id"),
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("applied", sa.Text, nullable=False),
)
