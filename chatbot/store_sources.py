"""Statements about what documents left behind in turns: attached messages, traces and sources.

Begins no transaction. Knows documents by their names and ids, and no library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import sqlalchemy as sa

from chatbot import records
from chatbot.records import from_json, to_json, to_json_or_none
from chatbot.store_schema import conversations, holds, traces, turns

ATTACHED = "question_attached"
"""Code of the notice by which a message became a document."""
Trace = dict[str, Any]


def attached_names(connection: sa.Connection, owners: Collection[str]) -> frozenset[str]:
    """Names of the documents that messages of these conversations and branches were attached as."""
    mine = turns.c.conversation_id.in_(owners)
    chosen = sa.select(turns.c.notices).where(mine, holds(turns.c.notices, to_json(ATTACHED)))
    notices = (from_json(records.NOTICES, text) for text in connection.scalars(chosen))
    return frozenset(
        str(n.values.get("document", "")) for some in notices for n in some if n.code == ATTACHED
    )


def forget_sources(
    connection: sa.Connection, which: sa.ColumnElement[bool], documents: Collection[str]
) -> None:
    """Take the text of documents out of traces and sources. `documents` holds names or ids.

    `which` chooses rows of `conversations`. The words of replies stay as they are.
    """
    owners = sa.select(conversations.c.id).where(which)
    for document in documents:
        mine = turns.c.conversation_id.in_(owners)
        told = sa.and_(mine, holds(traces.c.trace, to_json(document)))
        scrub_traces(connection, told, partial(without_document, document))
        _drop_sources(connection, mine, document)


def scrub_traces(
    connection: sa.Connection, which: sa.ColumnElement[bool], scrub: Callable[[Trace], Trace]
) -> None:
    """Change traces as JSON objects: there are thousands, and most stay as they are."""
    joined = sa.select(traces).join(turns, turns.c.id == traces.c.turn_id).where(which)
    changed = []
    for row in connection.execute(joined):
        old = json.loads(row.trace)
        if (new := scrub(old)) != old:
            changed.append({"of_turn": row.turn_id, "new": to_json(new)})
    if changed:
        here = traces.c.turn_id == sa.bindparam("of_turn")
        connection.execute(sa.update(traces).where(here).values(trace=sa.bindparam("new")), changed)


def without_document(document: str, trace: Trace) -> Trace:
    """A trace without the text of passages of a document; their sizes stay."""

    def blank(segment: dict[str, Any]) -> dict[str, Any]:
        held = document in (segment.get("document"), segment.get("document_id"))
        return segment | {"text": ""} if held else segment

    return trace | {
        "segments": [blank(segment) for segment in trace["segments"]],
        "dropped": [d | {"segment": blank(d["segment"])} for d in trace.get("dropped", ())],
    }


def _drop_sources(connection: sa.Connection, which: sa.ColumnElement[bool], document: str) -> None:
    """Take citations of a document away: they quote it."""
    name = to_json(document)
    cited = sa.or_(holds(turns.c.citations, name), holds(turns.c.best_sentence, name))
    columns = (turns.c.id, turns.c.conversation_id, turns.c.citations, turns.c.best_sentence)
    changed = set()
    for row in connection.execute(sa.select(*columns).where(which, cited)).all():
        citations = from_json(records.CITATIONS, row.citations) if row.citations else ()
        left = tuple(c for c in citations if document not in (c.document, c.document_id))
        best = from_json(records.CITATION, row.best_sentence) if row.best_sentence else None
        if best is not None and document in (best.document, best.document_id):
            best = None
        values = {"citations": to_json_or_none(left), "best_sentence": to_json_or_none(best)}
        connection.execute(sa.update(turns).where(turns.c.id == row.id).values(values))
        changed.add(row.conversation_id)
    # Whoever has read these turns reads them anew.
    edited = sa.update(conversations).where(conversations.c.id.in_(changed))
    connection.execute(edited.values(edits=conversations.c.edits + 1))
