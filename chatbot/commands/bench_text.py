"""Real text to talk about in a measurement; knows no chat and no model."""

from __future__ import annotations

import re
from pathlib import Path
from pydoc_data.topics import topics  # the language reference that comes with Python

from chatbot.errors import InputError
from chatbot.interchange import read_conversation

QUESTION_CHARACTERS = 300
"""Messages are cut here, so that turns are of one size."""
LEAST_WORDS, MOST_WORDS = 6, 45
_PROSE = re.compile(r"[A-Z][\w\s,;:'\"()\-/.]+\.")


def messages(path: Path | None) -> list[str]:
    """What the user says, in order: that of a conversation, or sentences of Python's reference.

    The sentences differ from each other and go on from one to the next, as a chat does. Raises
    InputError for a conversation without a message of some length.
    """
    if path is None:
        return sentences()
    texts = [turn.question for turn in read_conversation(path).turns]
    found = [text[:QUESTION_CHARACTERS].strip() for text in texts if len(text.split()) > 3]
    if not found:
        raise InputError(f"{path} has no questions to ask; choose another file.")
    return found


def sentences() -> list[str]:
    """The prose of the reference, without its grammar and its examples."""
    found: dict[str, None] = {}
    for name in sorted(topics):
        for paragraph in re.split(r"\n\s*\n", str(topics[name])):
            if paragraph.startswith((" ", "\t")) or "::=" in paragraph:
                continue
            text = " ".join(paragraph.split()).replace("*", "").replace('"', "'")
            for sentence in re.split(r"(?<=\.)\s+(?=[A-Z])", text):
                if LEAST_WORDS <= len(sentence.split()) <= MOST_WORDS and _PROSE.fullmatch(
                    sentence
                ):
                    found[sentence[:QUESTION_CHARACTERS]] = None
    return list(found)
