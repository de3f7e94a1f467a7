"""What of an imported chat is not as it was in its file, in sentences for people. Pure."""

from __future__ import annotations

from collections import Counter

from chatbot.written_times import read_time

Changes = Counter[str]
"""How often a message was not taken as it is, by the type of a part or one of these:"""
NULL, TWICE, HIDDEN, ODD, CIRCLING, UNREAD = (
    "\0null",
    "\0twice",
    "\0hidden",
    "\0odd",
    "\0circling",
    "\0unread",
)
_SENTENCES = {
    NULL: "Messages with null for their text are empty: {n}.",
    TWICE: "Messages with the id of an earlier one have a new id: {n}.",
    HIDDEN: "Messages that ChatGPT does not show were left out: {n}.",
    ODD: "Messages that are no object were left out: {n}.",
    CIRCLING: "Messages that are their own ancestors were left out: {n}.",
    UNREAD: "Times that cannot be read were left out: {n}.",
}


def time_of(value: object, changes: Changes | None) -> str | None:
    """A time as it is kept. What is there and is none is counted."""
    time = read_time(value)
    if time is None and value not in (None, "") and changes is not None:
        changes[UNREAD] += 1
    return time


def told_of(changes: Changes) -> list[str]:
    """One sentence for each kind of change."""
    parts = {kind: n for kind, n in changes.items() if kind not in _SENTENCES}
    found: list[str] = []
    if parts:
        shown = ", ".join(f"{n} of type {kind!r}" for kind, n in parts.items())
        found.append(f"Parts of messages that are no text were left out: {shown}.")
    return found + [text.format(n=changes[k]) for k, text in _SENTENCES.items() if changes[k]]
