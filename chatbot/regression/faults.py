"""What is wrong with a suite, in one sentence that names file and line. Knows no rule of suites."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from chatbot.errors import InputError

SHOWN_CHARACTERS = 60


class SuiteError(InputError):
    """A suite cannot be run as it is written; exit code 2. Line 0: the whole file."""

    def __init__(self, file: str, line: int, sentence: str) -> None:
        where = f", line {line}" if line else ""
        super().__init__(f"{file}{where}: {sentence}")
        self.file = file
        self.line = line


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known, with the nearest one that is."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}."
    return f"unknown {what} {shown(name)}; {hint}"


def shown(value: object) -> str:
    """A value as it was written, short enough for a sentence."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
