"""Keeps control tokens in texts from being read as such where only text can be sent. Pure.

A server that takes token ids needs none of this: there the ids say what is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

WORD_JOINER = "\u2060"
"""Invisible, breaks no line, and splits a control token into ordinary text."""
# Markers of all model families that we know, for servers whose vocabulary is not known here.
_ANY_MARKER = re.compile(
    r"<[|｜][^<>\n]{1,80}[|｜]>|</?s>|<(?:bos|eos|pad|unk|mask|sep|cls)>|"
    r"<(?:start|end|begin)_of_\w{1,30}>|<</?SYS>>|<turn\|>|<\|?turn>|"
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG)\]"
)

Defuse = Callable[[str], str]


def defuse_any(text: str) -> str:
    """`text` with every marker that some model may read as control broken up."""
    return _ANY_MARKER.sub(_broken, text)


def defuser(control_texts: Iterable[str]) -> Defuse:
    """Breaks up exactly these control tokens. Those of one character cannot be broken up."""
    longest_first = sorted({t for t in control_texts if len(t) > 1}, key=len, reverse=True)
    if not longest_first:
        return lambda text: text
    pattern = re.compile("|".join(map(re.escape, longest_first)))

    def defuse(text: str) -> str:
        # What remains beside a broken one may be another, as in "<s<s>>".
        while pattern.search(text):
            text = pattern.sub(_broken, text)
        return text

    return defuse


def split_any(text: str) -> list[str]:
    """`text` cut in the middle of every marker, for tokenizers that read markers as control."""
    pieces, start = [], 0
    for found in _ANY_MARKER.finditer(text):
        pieces.append(text[start : found.start() + 1])
        start = found.start() + 1
    return [piece for piece in (*pieces, text[start:]) if piece]


def _broken(found: re.Match[str]) -> str:
    marker = found[0]
    return marker[0] + WORD_JOINER + marker[1:]
