"""How many words the subjects of two lines have in common. Pure; knows lines of text only."""

from __future__ import annotations

from chatbot.line_values import name_keys
from chatbot.subjects import among, clause_with, subject

SHORT_WORDS = 16
"""Longer lines tell more than one thing."""


def shares(line: str, old: str) -> tuple[int, float, float]:
    """How many words of their subjects two lines share, of the shorter and of the longer one."""
    both = name_keys(line) & name_keys(old)
    mine, theirs = subject(line) | both, subject(old) | both
    shared = len([term for term in mine if among(term, theirs)])
    sizes = sorted((max(1, len(mine)), max(1, len(theirs))))
    return shared, shared / sizes[0], shared / sizes[1]


def shares_of_clause(line: str, after: str, old: str, before: str) -> tuple[int, float, float]:
    """The same of the clauses with the values, if these have more in common: people tell why."""
    whole = shares(line, old)
    if max(len(line.split()), len(old.split())) > SHORT_WORDS:
        return whole
    parts = shares(clause_with(line, after), clause_with(old, before))
    return parts if parts[1:] > whole[1:] and (parts[0] > 1 or parts[2] == 1) else whole
