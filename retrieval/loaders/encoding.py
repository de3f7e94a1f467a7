"""Bytes of unknown encoding to text, judged on the whole file. Knows no file format."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from retrieval.types import LoadError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KINDS = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a compressed file"),
    (b"7z\xbc\xaf", "a compressed file"),
    (b"\x7fELF", "a program"),
)
# The most frequent syllables of Korean prose. In every Korean text they make up a quarter or
# more of all; in Chinese, Japanese or Johab bytes that are misread as CP949 they do not.
_FREQUENT = frozenset("이다의는에을하고가은로한를기사지서도인자대리정시부제나일해그어조")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_HANGUL = re.compile("[가-힣]")
_HANJA = re.compile("[\u4e00-\u9fff\uf900-\ufaff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_NARROW = ["cp932", "gb18030", "big5", "cp1252", "utf_16_le", "utf_16_be"]
_WIDE = [*_NARROW, "euc_jp", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """`warning` is a sentence for the user when characters were lost, else ""."""

    text: str
    encoding: str
    warning: str = ""


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """The text of `data` without its byte order mark.

    `declared` is what the file says of itself (HTML): believed when the bytes agree.
    Raises LoadError when the bytes are not text at all.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _strict(data[len(mark) :], encoding) or _lossy(data[len(mark) :], encoding)
    _refuse_known_kinds(data)
    if declared and (found := _strict(data, declared)) and not _is_binary(found.text):
        return found
    found = _with_nuls(data) if b"\0" in data else _without_nuls(data)
    if found is None or _is_binary(found.text):
        raise LoadError("This file is not text, whatever its name says; upload a readable format.")
    return found


def _refuse_known_kinds(data: bytes) -> None:
    for start, kind in _KINDS:
        if data.startswith(start):
            raise LoadError(f"This file is {kind}, not text; give it its right name ending.")


def _is_binary(text: str) -> bool:
    """More than a tenth of control characters (NULs apart, which were weighed before)."""
    return len(_CONTROL.findall(text.replace("\0", ""))) * 10 > len(text)


def _strict(data: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(data.decode(encoding), encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _lossy(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    n_lost = text.count("\ufffd")
    warning = f"{n_lost} characters could not be read ({encoding}) and are shown as \ufffd."
    return Decoded(text, encoding, warning)


def _with_nuls(data: bytes) -> Decoded | None:
    """UTF-16 or UTF-32 without a mark, or text with stray NULs; None: binary.

    In UTF-16 the NULs are the high halves of ASCII characters, so they all stand on one side.
    """
    n_even, n_odd = data[::2].count(0), data[1::2].count(0)
    order = "le" if n_odd > n_even else "be"
    one_sided = max(n_even, n_odd) >= 4 * min(n_even, n_odd)
    n_nuls = n_even + n_odd
    if n_nuls * 2 > len(data) and (wide := _strict(data, f"utf-32-{order}")):
        return wide
    if one_sided and n_nuls * 4 >= len(data):
        return _utf16(data, order)
    bare = data.replace(b"\0", b"")
    if (stray := _strict(bare, "utf-8")) and n_nuls * 5 <= len(data):
        return stray
    if one_sided and n_nuls * 50 >= len(data) and (found := _utf16(data, order)):
        return found
    return _without_nuls(bare) if n_nuls * 100 <= len(data) else None


def _utf16(data: bytes, order: str) -> Decoded | None:
    """A cut last byte is no reason to refuse the file."""
    found = _strict(data[: len(data) // 2 * 2], f"utf-16-{order}")
    if found is None or len(data) % 2 == 0:
        return found
    return Decoded(found.text, found.encoding, "The last character of this file is cut off.")


def _without_nuls(data: bytes) -> Decoded:
    if found := _strict(data, "utf-8"):
        return found
    for encoding in ("cp949", "johab"):
        found = _strict(data, encoding)
        if found and _is_korean(found.text):
            return found
    return _guess(data) or _cut_utf8(data) or _lossy(data, "utf-8")


def _is_korean(text: str) -> bool:
    foreign = _NOT_ASCII.findall(text)
    hangul = _HANGUL.findall(text)
    if len(hangul) * 3 < len(foreign):
        return False
    # KS X 1001 has the 2,350 syllables that Korean really uses; misread bytes hit the others.
    n_usual = sum(len(letter.encode("euc-kr", "ignore")) > 0 for letter in hangul)
    if n_usual * 10 < len(hangul) * 8:
        return False
    if len(hangul) * 10 >= len(foreign) * 8 and len(hangul) < 30:
        return True
    n_frequent = sum(letter in _FREQUENT for letter in hangul)
    n_korean = len(hangul) + len(_HANJA.findall(text))
    return n_frequent * 10 >= len(hangul) and (
        len(hangul) * 10 >= len(foreign) * 8 or n_korean * 10 >= len(foreign) * 5
    )


def _guess(data: bytes) -> Decoded | None:
    """What charset-normalizer says, first among the usual encodings, then among more.

    CP1252 reads nearly anything: where accented letters outnumber plain ones it is not meant.
    """
    import charset_normalizer

    for candidates in (_NARROW, _WIDE):
        best = charset_normalizer.from_bytes(data, cp_isolation=candidates).best()
        found = _strict(data, best.encoding) if best else None
        if found and (candidates is _WIDE or not _is_accented(found)):
            return found
    return _strict(data, "cp1252")


def _is_accented(found: Decoded) -> bool:
    letters = [letter for letter in found.text if letter.isalpha()]
    n_foreign = sum(not letter.isascii() for letter in letters)
    return found.encoding == "cp1252" and n_foreign * 5 > len(letters) * 2


def _cut_utf8(data: bytes) -> Decoded | None:
    """UTF-8 of which a few bytes are damaged is still UTF-8."""
    found = _lossy(data, "utf-8")
    n_good = len(_NOT_ASCII.findall(found.text)) - found.text.count("\ufffd")
    return found if n_good > 10 * found.text.count("\ufffd") else None
