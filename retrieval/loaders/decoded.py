"""Bytes of a known encoding to text, strictly or with what is lost. Guesses nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

SAVE_AS_UTF8 = "if its characters look wrong, save it as UTF-8 and add it again."


@dataclass(frozen=True, slots=True)
class Decoded:
    """`warning` is a sentence for the user when characters were lost, else ""."""

    text: str
    encoding: str
    warning: str = ""


def strict(data: bytes, encoding: str) -> Decoded | None:
    """None where the bytes are not of the encoding, or nothing is that has this name."""
    try:
        return Decoded(data.decode(encoding), encoding)
    except (ValueError, LookupError):
        return None


def lossy(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    n_lost = text.count("\ufffd")
    warning = f"{n_lost} characters could not be read ({encoding}) and are shown as \ufffd."
    return Decoded(text, encoding, warning)


def uncertain(found: Decoded) -> Decoded:
    warning = f"The encoding of this file is uncertain, it was read as {found.encoding}; "
    return replace(found, warning=warning + SAVE_AS_UTF8)
