"""Bytes of unknown encoding to text, judged on the whole file. Knows no file format."""

from __future__ import annotations

import codecs
import re

from retrieval.loaders.asian_letters import (
    HANGUL,
    foreign_letters,
    is_hangul,
    is_japanese,
    is_kana,
    is_korean,
    rare_and_usual_hangul,
)
from retrieval.loaders.cyrillic import cyrillic_encoding
from retrieval.loaders.declared import believed, escaped
from retrieval.loaders.decoded import Decoded, lossy, strict, uncertain
from retrieval.loaders.kin_of_western import meant_encoding
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
_NOT_ASCII, _LETTER = re.compile(r"[^\x00-\x7f]"), re.compile("[A-Za-z]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
# Characters that texts are made of; in the wrong byte order few are met.
_USUAL = re.compile(
    "[\t\n\r -~\u00a0-\u024f\u0370-\u04ff\u2010-\u2027\u2030-\u203b\u20a9\u20ac\u2100-\u22ff"
    "\u2460-\u24ff\u2500-\u26ff\u3000-\u30ff\u3200-\u32ff\u4e00-\u9fff가-힣\uff00-\uffef]"
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
# Share of letters as frequent as in a language that charset-normalizer knows; prose has 0.3.
_SURE = 0.1
_NARROW = ["cp932", "gb18030", "big5", "cp1252", "utf_16_le", "utf_16_be"]
_WIDE = [*_NARROW, "euc_jp", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"]


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """The text of `data` without its byte order mark.

    `declared` is what the file says of itself (HTML): believed when the bytes agree.
    Raises LoadError when the bytes are not text at all.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return strict(data[len(mark) :], encoding) or lossy(data[len(mark) :], encoding)
    _refuse_known_kinds(data)
    if declared and (found := believed(data, declared)) and not _is_binary(found.text):
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
    """A tenth of control characters (NULs apart, weighed before), or a third unreadable."""
    n_control = len(_CONTROL.findall(text.replace("\0", "")))
    return n_control * 10 > len(text) or text.count("\ufffd") * 3 > len(text)


def _with_nuls(data: bytes) -> Decoded | None:
    """UTF-16 or UTF-32 without a mark, or text with stray NULs; None: binary."""
    n_nuls = data.count(0)
    if n_nuls * 2 > len(data):
        for order in ("le", "be"):
            if wide := strict(data, f"utf-32-{order}"):
                return wide
    bare = data.replace(b"\0", b"")
    few = n_nuls * 5 <= len(data)
    stray = strict(bare, "utf-8") if few else None
    if stray and not _is_binary(stray.text):  # Cyrillic and Greek in UTF-16 are control characters
        return stray
    if few and _has_bare_spaces(data):
        return _without_nuls(bare)
    if found := _utf16(data):
        return found
    if few and (korean := strict(bare, "cp949")) and is_korean(korean.text):
        return korean
    return _without_nuls(bare) if n_nuls * 100 <= len(data) else None


def _has_bare_spaces(data: bytes) -> bool:
    """Whether more spaces lack their NUL than UTF-16 has NULs; the byte order is that which the
    places of the NULs allow."""
    halves = data[0::2], data[1::2]
    low, high = halves if halves[1].count(0) >= halves[0].count(0) else halves[::-1]
    bare = sum(one == 0x20 and other != 0 for one, other in zip(low, high, strict=False))
    return bare > high.count(0)


def _utf16(data: bytes) -> Decoded | None:
    """The byte order that gives usual characters. A cut last byte is no reason to refuse."""
    whole = data[: len(data) // 2 * 2]
    found = [strict(whole, f"utf-16-{order}") for order in ("le", "be")]
    shares = [len(_USUAL.findall(one.text)) / max(1, len(one.text)) if one else 0 for one in found]
    best = found[shares.index(max(shares))]
    if best is None or max(shares) < 0.85:
        return None
    warning = "The last character of this file is cut off." if len(data) % 2 else ""
    return Decoded(best.text, best.encoding, warning)


def _without_nuls(data: bytes) -> Decoded:
    if found := escaped(data) or strict(data, "utf-8"):
        return found
    if found := _mixed_lines(data):
        return found
    for encoding, fits in (
        ("cp949", is_korean),
        ("johab", is_korean),
        ("euc_jp", is_japanese),
        ("cp932", is_japanese),
        ("utf-16-le", is_hangul),
        ("utf-16-be", is_hangul),
        ("utf-16-le", is_kana),
        ("utf-16-be", is_kana),
    ):
        found = strict(data, encoding)
        if found and fits(found.text):
            return found
    found = _cut_utf8(data) or _cut_cp949(data) or _little_korean(data) or _guess(data)
    return found or lossy(data, "utf-8")


def _little_korean(data: bytes) -> Decoded | None:
    """Few words, among them rare syllables. Where these outnumber the usual ones, a guess is said
    to be uncertain, unless accents and signs between English letters would look the same."""
    found = strict(data, "cp949")
    n_rare, n_usual = rare_and_usual_hangul(found.text) if found else (0, 0)
    n_high = sum(map(len, _HIGH_RUN.findall(data)))
    mostly_ascii = n_high * 10 <= len(data)
    if found and n_usual >= max(2, n_rare):
        return found if mostly_ascii else uncertain(found)
    doubtful = n_usual or (n_rare and mostly_ascii and n_high == 2 * n_rare)
    guess = _guess(data) if doubtful else None
    return guess and uncertain(guess)


def _mixed_lines(data: bytes) -> Decoded | None:
    """A log to which one program writes Korean in UTF-8 and another in CP949: line by line."""
    lines = data.split(b"\n")
    texts = [line.text if (line := strict(raw, "utf-8")) else None for raw in lines]
    rest = b"\n".join(raw for raw, text in zip(lines, texts, strict=True) if text is None)
    other = strict(rest, "cp949")
    is_utf8 = any(text and HANGUL.search(text) for text in texts)
    if not is_utf8 or other is None or not is_korean(other.text) or _damage(rest) < 0.5:
        return None
    others = iter(other.text.split("\n"))
    joined = "\n".join(next(others) if text is None else text for text in texts)
    n_other = rest.count(b"\n") + 1
    warning = f"Two encodings are mixed in this file: {n_other} lines were read as cp949, "
    return Decoded(joined, "utf-8", f"{warning}the others as UTF-8; check their characters.")


def _damage(data: bytes) -> float:
    """The share of unreadable characters among those beyond ASCII, taken for UTF-8."""
    found = _NOT_ASCII.findall(data.decode("utf-8", "replace"))
    return found.count("\ufffd") / max(1, len(found))


def _guess(data: bytes) -> Decoded | None:
    """What charset-normalizer says, first among the usual encodings, then among more.

    CP1252 reads nearly anything: where accented letters outnumber plain ones it is not meant.
    """
    import charset_normalizer

    runs = _HIGH_RUN.findall(data)
    if sum(map(len, runs)) * 2 < len(runs) * 3 and (western := _western(data)):
        # Accents stand alone between ASCII letters; characters of Asia do not.
        return uncertain(western) if _is_accented(western) else western
    if (page := cyrillic_encoding(data)) and (cyrillic := strict(data, page)):
        return cyrillic
    for candidates in (_NARROW, _WIDE):
        best = charset_normalizer.from_bytes(data, cp_isolation=candidates).best()
        found = strict(data, best.encoding) if best else None
        if best and found and (candidates is _WIDE or not _is_accented(found)):
            doubtful = best.coherence < _SURE and _is_single_byte(data, found)
            return uncertain(found) if doubtful else found
    western = _western(data)
    return western and uncertain(western)


def _western(data: bytes) -> Decoded | None:
    return strict(data, meant_encoding(data))


def _is_single_byte(data: bytes, found: Decoded) -> bool:
    """Such encodings give any bytes some characters, right or wrong."""
    return len(data) == len(found.text)


def _is_accented(found: Decoded) -> bool:
    n_plain = len(_LETTER.findall(found.text))
    n_foreign = foreign_letters(found.text).total()
    return found.encoding == "cp1252" and n_foreign * 5 > (n_plain + n_foreign) * 2


def _cut_utf8(data: bytes) -> Decoded | None:
    """UTF-8 of which a few bytes are damaged is still UTF-8."""
    found = lossy(data, "utf-8")
    n_good = len(_NOT_ASCII.findall(found.text)) - found.text.count("\ufffd")
    return found if n_good > 10 * found.text.count("\ufffd") else None


def _cut_cp949(data: bytes) -> Decoded | None:
    """CP949 of which less than a byte in a hundred is damaged, when the rest is Hangul."""
    found = lossy(data, "cp949")
    n_lost = found.text.count("\ufffd")
    n_foreign = len(_NOT_ASCII.findall(found.text)) - n_lost
    clear = len(HANGUL.findall(found.text)) * 10 >= n_foreign * 8
    return found if n_lost * 100 < len(data) and clear and is_korean(found.text) else None
