"""What scripts may ask the running program for: an answer, or the prompt that it would have.

For gradio_client and plain HTTP; the page itself uses none of it. Knows no widget.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from chatbot.chat import TurnDone
from chatbot.errors import EngineError, InputError
from chatbot.interchange import citation_record, trace_record
from chatbot.messages import Conversation
from chatbot.records import new_id, to_plain
from chatbot.services import Services
from chatbot.store_changes import NOTHING, Changes
from chatbot.ui.calls import checked_id


def ask(services: Services, question: str, conversation: str = "") -> dict[str, Any]:
    """An answer with its citations, in a conversation of this id or a new one for "".

    Raises InputError, and EngineError while there is no model.
    """
    _check(services, question)
    known = _known(conversation)
    cid = known or new_id()
    # A question that is refused leaves no empty conversation behind.
    changes = NOTHING if known else Changes(new=Conversation(cid))
    turn = None
    reply = services.chat.reply(cid, question, changes=changes)
    with closing(reply) as events:  # type: ignore[type-var]
        for event in events:
            turn = event.turn if isinstance(event, TurnDone) else turn
    if turn is None:
        raise EngineError("The reply did not come to an end; ask again.")
    return {
        "answer": turn.reply,
        "conversation": cid,
        "finish": turn.finish,
        "citations": [citation_record(citation) for citation in turn.citations],
        "notices": [notice.text for notice in turn.notices],
        "usage": to_plain(turn.usage),
    }


def context(services: Services, question: str, conversation: str = "") -> dict[str, Any]:
    """The prompt that a question would have, in a new conversation for ""; calls no model.

    Raises as `ask` does.
    """
    _check(services, question)
    if cid := _known(conversation):
        return trace_record(services.chat.context(cid, question))
    # One that nobody has: looking leaves nothing behind.
    chat = services.chat
    trace = chat.builder.build(Conversation(""), question, chat.budget()).trace
    return trace_record(trace)


def _known(conversation: object) -> str:
    """The id of a conversation, or "" for a new one. Raises InputError for what is no id."""
    if conversation in ("", None):
        return ""
    if cid := checked_id(conversation):
        return cid
    raise InputError("There is no such conversation; leave it out for a new one.")


def _check(services: Services, question: object) -> None:
    if not isinstance(question, str) or not question.strip():
        raise InputError("The question is empty; send one as text.")
    status = services.engine.status
    if status.state != "ready":
        raise EngineError(f"The model is not ready: {status.message}")
