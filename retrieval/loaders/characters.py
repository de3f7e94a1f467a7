"""Takes out characters that break stores, logs and search. Knows no format and no language."""

from __future__ import annotations

import re
import unicodedata

# Colour codes of terminals in logs, whole; then what is left of the control characters.
# U+FEFF is a byte order mark wherever it stands; the last two are no characters at all.
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_JUNK = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Decomposed Hangul and accents (macOS): search, models and people want one character each.
# Only these runs are composed: plain NFC would also change signs that need no change.
_DECOMPOSED = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]+|[^\\W\\d_][\u0300-\u036f]+")
# Invisible marks that can turn a name round or hide in it.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\U000e0000-\U000e007f]")


def sanitize(text: str) -> str:
    """Text that every store can take; line ends are `\\n`. Clean text comes back unchanged."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = _compose(_surrogates(text))
    if "\x1b" in text:
        text = _TERMINAL.sub("", text)
    # Form feeds and their like are line ends, one for one, so that offsets stay.
    text = text.replace("\x0c", "\n").replace("\x0b", "\n").replace("\x85", "\n")
    return _JUNK.sub("", text)


def sanitize_line(text: str) -> str:
    """One line: for names, labels, titles and sentences. Blank runs become one space."""
    text = _INVISIBLE.sub("", sanitize(text))  # before composing: a mark may part what composes
    return " ".join(unicodedata.normalize("NFC", text).split())


def _surrogates(text: str) -> str:
    """Halves that belong together become one character, the others go."""
    if not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _compose(text: str) -> str:
    return _DECOMPOSED.sub(lambda found: unicodedata.normalize("NFC", found.group()), text)
