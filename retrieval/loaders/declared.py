"""What bytes say of their own encoding, in words or by escape sequences, and when to believe it."""

from __future__ import annotations

import codecs
from dataclasses import replace

from retrieval.loaders.asian_letters import HANGUL, is_korean
from retrieval.loaders.decoded import SAVE_AS_UTF8, Decoded, strict

# Python decodes by these names too, but no text is in them.
_NO_CHARSETS = frozenset({"undefined", "idna", "punycode", "unicode-escape", "raw-unicode-escape"})
_FIT_ANY_BYTES = frozenset({"iso8859-1", "iso8859-15", "cp1252"})
MIN_HANGUL = 3
"""Two capitals with accents side by side may be one or two syllables."""
_ESC, _SHIFTS = b"\x1b", b"\x0e\x0f"
# Escape sequences before the first character of two bytes, and the encodings that have them.
_ESCAPED = (
    ((b"\x1b$B", b"\x1b$@", b"\x1b$(D"), ("iso2022_jp", "iso2022_jp_2", "iso2022_jp_ext")),
    ((b"\x1b$)C",), ("iso2022_kr",)),
)


def believed(data: bytes, declared: str) -> Decoded | None:
    """The text in the encoding that a file names; None when its bytes are not of it.

    Any bytes fit the Western ones: Korean or UTF-8 behind such a name is taken for what it is.
    """
    try:
        name = codecs.lookup(declared).name
    except (ValueError, LookupError):  # the first for a NUL in the name
        return None
    found = None if name.replace("_", "-") in _NO_CHARSETS else strict(data, declared)
    other = _likelier(data) if found and name in _FIT_ANY_BYTES else None
    if other is None or other.encoding == "utf-8":  # which nothing else looks like
        return other or found
    warning = f"This file says that it is in {name}, but it was read as {other.encoding}, "
    return replace(other, warning=f"{warning}which fits its characters; {SAVE_AS_UTF8}")


def _likelier(data: bytes) -> Decoded | None:
    if data.isascii():
        return None
    if found := strict(data, "utf-8"):
        return found
    korean = strict(data, "cp949")
    if korean and len(HANGUL.findall(korean.text)) >= MIN_HANGUL and is_korean(korean.text):
        return korean
    return None


def escaped(data: bytes) -> Decoded | None:
    """ISO-2022, which is ASCII with escape sequences; None when any is not of it."""
    if _ESC not in data or not data.isascii():
        return None
    for begins, encodings in _ESCAPED:
        for encoding in encodings if any(begin in data for begin in begins) else ():
            found = strict(data, encoding)
            if found and not found.text.isascii() and not _has_controls(found.text):
                return found
    return None


def _has_controls(text: str) -> bool:
    return any(chr(sign) in text for sign in _ESC + _SHIFTS)
