"""What of an imported chat is not as it was in its file, in sentences for people. Pure."""

from __future__ import annotations

from collections import Counter

Changes = Counter[str]
"""How often a message was not taken as it is, by the type of a part or one of these:"""
NULL, TWICE = "\0null", "\0twice"


def told_of(changes: Changes) -> list[str]:
    """One sentence for each kind of change."""
    parts = {kind: n for kind, n in changes.items() if kind not in (NULL, TWICE)}
    found: list[str] = []
    if parts:
        shown = ", ".join(f"{n} of type {kind!r}" for kind, n in parts.items())
        found.append(f"Parts of messages that are no text were left out: {shown}.")
    if n := changes[NULL]:
        found.append(f"Messages with null for their text are empty: {n}.")
    if n := changes[TWICE]:
        found.append(f"Messages with the id of an earlier one have a new id: {n}.")
    return found
