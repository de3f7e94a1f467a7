"""The questions of `context`: one from the command line, or a JSON Lines file. Knows no prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.commands.common import checked_text
from chatbot.errors import InputError


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `id` comes back with its result; `documents` None: all that were given."""

    text: str
    id: Any = None
    documents: tuple[str, ...] | None = None


def read_questions(path: Path) -> list[Question]:
    """All questions of a file, in order. Raises InputError that names the line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"The file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8.") from error
    questions = [
        _question(line, f"line {number} of {path}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not questions:
        raise InputError(f"{path} holds no question; write one JSON object per line.")
    return questions


def _question(line: str, where: str) -> Question:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON: {error}.") from error
    text = data.get("question") if isinstance(data, dict) else None
    if not isinstance(text, str):
        raise InputError(f'{where} has no text under "question".')
    documents = data.get("documents")
    if documents is None:
        return Question(checked_text(text, f"The question in {where}"), data.get("id"))
    if not isinstance(documents, list) or not all(isinstance(name, str) for name in documents):
        raise InputError(f'{where}: "documents" must be a list of names, or null for all.')
    return Question(
        checked_text(text, f"The question in {where}"), data.get("id"), tuple(documents)
    )
