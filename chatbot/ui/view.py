"""Pure functions from a conversation to what the chat shows. Knows no widget and no server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from chatbot.messages import Conversation, Notice, PromptTrace, Turn, Version
from chatbot.ui.escape import MARK_CLOSE, MARK_OPEN, literal_markdown, safe_markdown
from chatbot.ui.fragments import (
    earlier_html,
    fold_html,
    pending_html,
    reply_foot_html,
    welcome_html,
)
from chatbot.ui.i18n import Language

Phase = Literal["loading", "documents", "waiting", "vectors", "reading", "writing"]
_BLOCK_SIGN = re.compile(r"^\s*(?:(?:[-*+>]|#{1,6}|\d{1,9}[.)])\s+)+")
SHOWN_TURNS = 30
"""Turns shown at least and added by each "earlier"; many more would slow streaming down."""
SHOWN_STEP = 10
"""The first turn shown is one of each so many: if each new turn moved all rows by one, the page
would draw all of them anew at the end of each reply."""


@dataclass(frozen=True, slots=True)
class Part:
    """One row of the chat: either Markdown or finished HTML of our own."""

    role: Literal["user", "assistant"]
    text: str
    is_html: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Rows of the chat, and for each the id of the turn that it belongs to ("" for none)."""

    parts: tuple[Part, ...]
    turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiveReply:
    """A reply that is being made, as far as it has come."""

    question: str
    turn_id: str = ""
    """The turn that a retry or an edit replaces; "" for a new question."""
    phase: Phase = "waiting"
    position: int = 0
    """How many replies come first."""
    document: str = ""
    """The file that has to be read before the answer can start."""
    text: str = ""
    trace: PromptTrace | None = None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Welcome:
    """What an empty chat says about the model and the documents."""

    is_demo: bool = False
    has_documents: bool = False
    unused_documents: int = 0
    """How many documents there are where the chat uses none of them."""


def view(
    conversation: Conversation | None,
    *,
    language: Language,
    shown: int = SHOWN_TURNS,
    live: LiveReply | None = None,
    traces: Mapping[str, PromptTrace] | None = None,
    versions: Mapping[str, Sequence[Version]] | None = None,
    welcome: Welcome | None = None,
) -> View:
    """The newest `shown` turns, the line where folding ends, and the reply in the making."""
    rows: list[tuple[Part, str]] = []
    turns = settled_turns(conversation, live)
    first = first_shown(len(turns), shown)
    if first:
        rows.append((_html(earlier_html(language, first)), ""))
    for number, turn in enumerate(turns[first:], start=first + 1):
        trace = turn.trace or (traces or {}).get(turn.id)
        is_last = live is None and number == len(turns)
        others = (versions or {}).get(turn.id, ())
        parts = turn_parts(turn, language, trace, is_last=is_last, versions=others)
        rows += [(part, turn.id) for part in parts]
        if conversation and conversation.summary and conversation.summary.covers == number:
            rows.append((_html(fold_html(language, conversation.summary)), ""))
    if live:
        rows += [(part, live.turn_id) for part in live_parts(live, language)]
    if not rows:
        state = welcome or Welcome()
        greeting = welcome_html(
            language, state.is_demo, state.has_documents, state.unused_documents
        )
        rows.append((_html(greeting), ""))
    return View(tuple(part for part, _ in rows), tuple(turn_id for _, turn_id in rows))


def first_shown(count: int, shown: int) -> int:
    """The place of the first of `count` turns that is shown, where `shown` are asked for."""
    return max(0, count - shown) // SHOWN_STEP * SHOWN_STEP


def settled_turns(conversation: Conversation | None, live: LiveReply | None) -> tuple[Turn, ...]:
    """The turns without the one that is being made right now."""
    if conversation is None:
        return ()
    turns = conversation.turns
    if live is None:
        return turns
    kept = [turn for turn in turns if turn.finish != "running"]
    for at, turn in enumerate(kept):
        if turn.id == live.turn_id:
            return tuple(kept[:at])
    return tuple(kept)


def turn_parts(
    turn: Turn,
    language: Language,
    trace: PromptTrace | None,
    *,
    is_last: bool,
    versions: Sequence[Version] = (),
) -> list[Part]:
    """Question, reply with unsupported statements marked, and what belongs under it."""
    parts = [Part("user", literal_markdown(turn.question))] if turn.user else []
    if turn.reply:
        parts.append(Part("assistant", safe_markdown(marked(turn.reply, turn.unsupported))))
    foot = reply_foot_html(turn, language, trace, is_last=is_last, versions=versions)
    return [*parts, _html(foot)]


def live_parts(live: LiveReply, language: Language) -> list[Part]:
    """The question with the reply so far, or with what it is waiting for."""
    parts = [Part("user", literal_markdown(live.question))]
    if live.text:
        parts.append(Part("assistant", safe_markdown(live.text)))
    else:
        parts.append(
            _html(pending_html(language, live.phase, live.position, live.document, live.trace))
        )
    return parts


def marked(reply: str, unsupported: tuple[str, ...]) -> str:
    """`reply` with marks around each statement that stands in it word for word, on one line.

    Statements that run over lines or code are left to the list under the reply.
    """
    rest = reply.replace(MARK_OPEN, "").replace(MARK_CLOSE, "")
    done: list[str] = []
    for sentence in unsupported:  # in the order of the reply; one that is said twice comes twice
        # A mark before the sign of a list or heading would undo it.
        statement = _BLOCK_SIGN.sub("", sentence)
        if can_be_marked(statement, rest):
            before, _, rest = rest.partition(statement)
            done += (before, MARK_OPEN, statement, MARK_CLOSE)
    return "".join((*done, rest))


def can_be_marked(statement: str, reply: str) -> bool:
    """Whether a mark around `statement` leaves the Markdown of `reply` as it is."""
    plain = not any(character in statement for character in "\n`|$")
    return plain and bool(statement) and statement in reply


def _html(text: str) -> Part:
    return Part("assistant", text, is_html=True)
