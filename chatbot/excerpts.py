"""Messages to excerpts: the parts of earlier turns that are searched and recalled. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chatbot.messages import Message
from chatbot.standing import Standing
from retrieval.sentences import sentence_cells
from retrieval.types import CountTokens

PART_TOKENS = 120
"""Long messages are searched and recalled in parts of about this size."""
MAX_PART_TOKENS = 240
ASIDE_NAME = "system"
"""Imported results of tools stand on the user's side under this name."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of an earlier message: `message.content[start:end]` in turn number `position`.

    `tokens` counts the part alone, without its header in the prompt.
    """

    position: int
    message: Message
    start: int
    end: int
    score: float
    standing: Standing | None = None
    tokens: int = 0
    note: str = ""
    """What the program says of it, such as that it has been corrected."""
    note_of: tuple[str, ...] = ()
    """Ids of other messages whose words the note holds."""
    later: tuple[str, ...] = ()
    """What was said since in place of what the excerpt says; the note holds it, too."""
    marks: tuple[str, str] = ("", "")
    """What stands before and behind its text where a part of the excerpt is cut off."""

    @property
    def text(self) -> str:
        return self.message.content[self.start : self.end].strip()


def is_users_own(message: Message) -> bool:
    """Whether the user of the chat said this, not a tool."""
    return message.role == "user" and message.name != ASIDE_NAME


def several_voices(messages: Iterable[Message]) -> bool:
    """Whether several named people speak on one side: a transcript, not a chat."""
    first: dict[str, str] = {}
    return any(
        first.setdefault(message.role, message.name) != message.name
        for message in messages
        if message.name and message.name != ASIDE_NAME
    )


def split_message(text: str, count_tokens: CountTokens) -> list[tuple[int, int]]:
    """Parts of a message as character spans that join up: whole sentences, about PART_TOKENS.

    A sentence above MAX_PART_TOKENS is cut at spaces or, without any, in the middle.
    """
    parts: list[tuple[int, int]] = []
    begin, size = 0, 0
    for start, end in _small_cells(text, count_tokens):
        tokens = count_tokens(text[start:end])
        if size and size + tokens > PART_TOKENS:
            parts.append((begin, start))
            begin, size = start, 0
        size += tokens
    if text[begin:].strip():
        parts.append((begin, len(text)))
    return parts


def _small_cells(text: str, count_tokens: CountTokens) -> list[tuple[int, int]]:
    cells: list[tuple[int, int]] = []
    for start, end in sentence_cells(text):
        # A token is at least one character in all but the rarest scripts: skip the count.
        small = end - start <= PART_TOKENS or count_tokens(text[start:end]) <= MAX_PART_TOKENS
        cells.extend([(start, end)] if small else _halves(text, start, end, count_tokens))
    return cells


def _halves(text: str, start: int, end: int, count_tokens: CountTokens) -> list[tuple[int, int]]:
    if end - start < 2 or count_tokens(text[start:end]) <= PART_TOKENS:
        return [(start, end)]
    middle = (start + end) // 2
    space = text.rfind(" ", start + 1, middle)
    newline = text.rfind("\n", start + 1, middle)
    cut = max(space, newline) + 1 if max(space, newline) > start else middle
    return [*_halves(text, start, cut, count_tokens), *_halves(text, cut, end, count_tokens)]
