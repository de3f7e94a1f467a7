"""A conversation's title out of its first question, and texts folded for search. Pure functions."""

from __future__ import annotations

import unicodedata

MAX_TITLE_CHARACTERS = 60
_ZERO_WIDTH_JOINER = "\u200d"


def title_from(question: str) -> str:
    """The first line with text in it, at most 60 characters; longer ones end at a word with "…"."""
    lines = (" ".join(line.split()) for line in question.splitlines())
    line = unicodedata.normalize("NFC", next((line for line in lines if line), ""))
    if len(line) <= MAX_TITLE_CHARACTERS:
        return line
    room = MAX_TITLE_CHARACTERS - 1
    at_word = line.rfind(" ", room // 2, room + 1)
    end = at_word if at_word > 0 else _before_joined(line, room)
    return line[:end].rstrip() + "…"


def fold_text(text: str) -> str:
    """What search compares: NFC, without case. Hangul typed as letters matches whole syllables."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _before_joined(line: str, end: int) -> int:
    """The last place at or before `end` that does not split a letter from its marks."""
    place = end
    while place > 1 and (_joins(line[place]) or line[place - 1] == _ZERO_WIDTH_JOINER):
        place -= 1
    return place if place > 1 else end


def _joins(character: str) -> bool:
    skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return (
        skin_tone
        or character == _ZERO_WIDTH_JOINER
        or unicodedata.category(character).startswith("M")
    )
