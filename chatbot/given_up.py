"""Whether a line names a value as what no longer holds: "not on Monday", "3층에서". Pure.

Knows the words around a value only: no kinds of values and no earlier line.
"""

from __future__ import annotations

import re

_BEFORE = re.compile(
    r"\b(?:not|than|instead of|from|left|quit|replac\w+|swapp?\w*|traded|dropped|cancell?ed"
    r"|without)\s(?:(?:the|my|our|on|at|in|for|about)\s){0,2}\Z",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"[,]?\s?(?:quit|left|retired|resigned|cancell?ed|dropped out|is out|was too|can['’]t)\b"
    r"|\w{0,3}\s?(?:말고|대신|아니|그만|떠나|퇴사|관뒀|틀렸)|(?:에서|을|를)\s(?:나와|그만|떠나|퇴사)",
    re.IGNORECASE,
)
_LEFT_BEFORE = re.compile(
    r"(?:\bnot|n['’]t|\brather than|\binstead of)\s(?:(?:the|on|at|in|for)\s){0,2}\Z"
    r"|\b(?:mov|chang|switch|reschedul|postpon|push|rais|lower|cut|drop|went|go|gone|up|down"
    r"|shift|relocat|transferr)\w*\s(?:[\w'’]+\s){0,3}from\s(?:the\s)?\Z",
    re.IGNORECASE,
)
_LEFT_BEHIND = re.compile(r"(?:이|가|은|는)?\s?(?:말고|아니라|아니고)|에서\s(?=\S.*로[\s.!,])")


def is_given_up(line: str, at: int, text: str) -> bool:
    """Whether the value `text` at a place of a line is among words of giving up."""
    behind = at + len(text)
    return bool(_BEFORE.search(line, 0, at) or _BEHIND.match(line, behind))


def is_left_for(line: str, text: str) -> bool:
    """Whether a value is surely what another one of the line takes the place of."""
    at = line.find(text)
    if at < 0:
        return False
    return bool(_LEFT_BEFORE.search(line, 0, at) or _LEFT_BEHIND.match(line, at + len(text)))
