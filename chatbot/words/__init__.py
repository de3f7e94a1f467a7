"""Lists of words and patterns in two languages, one file a subject. Knows not what they are for.

A file is a list of words, or of regular expressions of which each stands on a line of its own;
lines that begin with "# " are comments.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@cache
def word_set(name: str) -> frozenset[str]:
    """The words of a file."""
    return frozenset(word for line in lines(name) for word in line.split())


@cache
def word_groups(name: str) -> tuple[tuple[str, ...], ...]:
    """The words of each line of a file."""
    return tuple(tuple(line.split()) for line in lines(name))


@cache
def patterns(name: str) -> re.Pattern[str]:
    """All patterns of a file as one; case is ignored, ^ and $ match at lines."""
    joined = "|".join(f"(?:{line})" for line in lines(name))
    return re.compile(joined, re.IGNORECASE | re.MULTILINE)


@cache
def lines(name: str) -> tuple[str, ...]:
    """The lines of a file that are no comments."""
    text = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("# "))
