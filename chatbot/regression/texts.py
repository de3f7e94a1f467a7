"""How texts are compared: without regard to case, white space and how Hangul is composed."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """The form in which two texts are compared."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def holds(text: str, wanted: str) -> bool:
    """Whether `wanted` stands somewhere in `text`."""
    return plain(wanted) in plain(text)


def printable(text: str) -> str:
    """Without characters that steer a terminal or that XML cannot hold."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def excerpt(text: str, most: int = 160) -> str:
    """A text on one line, shortened in the middle with a mark when it is long."""
    line = " ".join(printable(text).split())
    if len(line) <= most:
        return line
    half = (most - 3) // 2
    return f"{line[:half]} … {line[-half:]}"
