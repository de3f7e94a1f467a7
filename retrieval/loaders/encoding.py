"""Bytes of unknown encoding to text, judged on the whole file. Knows no file format."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass, replace

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
# The most frequent syllables of Korean prose. In every Korean text they make up a quarter or
# more of all; in Chinese, Japanese or Johab bytes that are misread as CP949 they do not.
_FREQUENT = frozenset("이다의는에을하고가은로한를기사지서도인자대리정시부제나일해그어조")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_LETTER = re.compile("[A-Za-z]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
# Characters that texts are made of; in the wrong byte order few are met.
_USUAL = re.compile(
    "[\t\n\r -~\u00a0-\u024f\u0370-\u04ff\u2010-\u2027\u2030-\u203b\u20a9\u20ac\u2100-\u22ff"
    "\u2460-\u24ff\u2500-\u26ff\u3000-\u30ff\u3200-\u32ff\u4e00-\u9fff가-힣\uff00-\uffef]"
)
_HANGUL = re.compile("[가-힣]")
_OF_JAPANESE = re.compile("[\t\n\r\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]")
_HANJA = re.compile("[\u4e00-\u9fff\uf900-\ufaff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
# Share of letters as frequent as in a language that charset-normalizer knows; prose has 0.3.
_SURE = 0.1
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
    """A tenth of control characters (NULs apart, weighed before), or a third unreadable."""
    n_control = len(_CONTROL.findall(text.replace("\0", "")))
    return n_control * 10 > len(text) or text.count("\ufffd") * 3 > len(text)


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
    """UTF-16 or UTF-32 without a mark, or text with stray NULs; None: binary."""
    n_nuls = data.count(0)
    if n_nuls * 2 > len(data):
        for order in ("le", "be"):
            if wide := _strict(data, f"utf-32-{order}"):
                return wide
    bare = data.replace(b"\0", b"")
    stray = _strict(bare, "utf-8") if n_nuls * 5 <= len(data) else None
    if stray and not _is_binary(stray.text):  # Cyrillic and Greek in UTF-16 are control characters
        return stray
    if found := _utf16(data):
        return found
    return _without_nuls(bare) if n_nuls * 100 <= len(data) else None


def _utf16(data: bytes) -> Decoded | None:
    """The byte order that gives usual characters. A cut last byte is no reason to refuse."""
    whole = data[: len(data) // 2 * 2]
    found = [_strict(whole, f"utf-16-{order}") for order in ("le", "be")]
    shares = [len(_USUAL.findall(one.text)) / max(1, len(one.text)) if one else 0 for one in found]
    best = found[shares.index(max(shares))]
    if best is None or max(shares) < 0.85:
        return None
    warning = "The last character of this file is cut off." if len(data) % 2 else ""
    return Decoded(best.text, best.encoding, warning)


def _without_nuls(data: bytes) -> Decoded:
    if found := _strict(data, "utf-8"):
        return found
    for encoding, fits in (
        ("cp949", _is_korean),
        ("johab", _is_korean),
        ("euc_jp", _is_japanese),
        ("cp932", _is_japanese),
        ("utf-16-le", _is_hangul),
        ("utf-16-be", _is_hangul),
        ("utf-16-le", _is_kana),
        ("utf-16-be", _is_kana),
    ):
        found = _strict(data, encoding)
        if found and fits(found.text):
            return found
    return _cut_utf8(data) or _cut_cp949(data) or _guess(data) or _lossy(data, "utf-8")


def _is_korean(text: str) -> bool:
    letters = _foreign_letters(text)
    hangul = Counter({letter: n for letter, n in letters.items() if "가" <= letter <= "힣"})
    n_foreign, n_hangul = letters.total(), hangul.total()
    if n_hangul * 3 < n_foreign or not n_hangul:
        return False
    # KS X 1001 has the 2,350 syllables that Korean really uses, two bytes each; misread bytes
    # hit the others.
    unusual = (n for letter, n in hangul.items() if len(letter.encode("euc-kr", "ignore")) != 2)
    if sum(unusual) * 5 > n_hangul:
        return False
    mostly = n_hangul * 10 >= n_foreign * 8
    if mostly and n_hangul < 30:
        return True
    n_frequent = sum(hangul[letter] for letter in _FREQUENT)
    n_korean = n_hangul + sum(n for letter, n in letters.items() if _HANJA.match(letter))
    return n_frequent * 10 >= n_hangul and (mostly or n_korean * 10 >= n_foreign * 8)


def _is_japanese(text: str) -> bool:
    """Kana have the same codes in EUC-JP and in Chinese EUC, but only Japanese is full of them."""
    letters = _foreign_letters(text)
    n_kana = sum(n for letter, n in letters.items() if "\u3041" <= letter <= "\u30fe")
    return n_kana * 10 >= max(10, 3 * letters.total())


def _foreign_letters(text: str) -> Counter[str]:
    """How often each letter beyond ASCII occurs; counting all characters first is quick."""
    counts = Counter(text)
    return Counter({c: n for c, n in counts.items() if not c.isascii() and c.isalpha()})


def _is_hangul(text: str) -> bool:
    return len(_HANGUL.findall(text)) * 20 >= 19 * len(text)


def _is_kana(text: str) -> bool:
    """Japanese without any ASCII, which has no NULs that would tell that it is UTF-16."""
    return len(_OF_JAPANESE.findall(text)) * 20 >= 19 * len(text) and _is_japanese(text)


def _guess(data: bytes) -> Decoded | None:
    """What charset-normalizer says, first among the usual encodings, then among more.

    CP1252 reads nearly anything: where accented letters outnumber plain ones it is not meant.
    """
    import charset_normalizer

    runs = _HIGH_RUN.findall(data)
    if sum(map(len, runs)) * 2 < len(runs) * 3 and (western := _western(data)):
        # Accents stand alone between ASCII letters; characters of Asia do not.
        return _uncertain(western) if _is_accented(western) else western
    for candidates in (_NARROW, _WIDE):
        best = charset_normalizer.from_bytes(data, cp_isolation=candidates).best()
        found = _strict(data, best.encoding) if best else None
        if best and found and (candidates is _WIDE or not _is_accented(found)):
            doubtful = best.coherence < _SURE and _is_single_byte(data, found)
            return _uncertain(found) if doubtful else found
    western = _western(data)
    return western and _uncertain(western)


def _western(data: bytes) -> Decoded | None:
    return _strict(data, meant_encoding(data))


def _is_single_byte(data: bytes, found: Decoded) -> bool:
    """Such encodings give any bytes some characters, right or wrong."""
    return len(data) == len(found.text)


def _uncertain(found: Decoded) -> Decoded:
    warning = (
        f"The encoding of this file is uncertain, it was read as {found.encoding}; "
        "if its characters look wrong, save it as UTF-8 and add it again."
    )
    return replace(found, warning=warning)


def _is_accented(found: Decoded) -> bool:
    n_plain = len(_LETTER.findall(found.text))
    n_foreign = _foreign_letters(found.text).total()
    return found.encoding == "cp1252" and n_foreign * 5 > (n_plain + n_foreign) * 2


def _cut_utf8(data: bytes) -> Decoded | None:
    """UTF-8 of which a few bytes are damaged is still UTF-8."""
    found = _lossy(data, "utf-8")
    n_good = len(_NOT_ASCII.findall(found.text)) - found.text.count("\ufffd")
    return found if n_good > 10 * found.text.count("\ufffd") else None


def _cut_cp949(data: bytes) -> Decoded | None:
    """CP949 of which less than a byte in a hundred is damaged, when the rest is Hangul."""
    found = _lossy(data, "cp949")
    n_lost = found.text.count("\ufffd")
    n_foreign = len(_NOT_ASCII.findall(found.text)) - n_lost
    clear = len(_HANGUL.findall(found.text)) * 10 >= n_foreign * 8
    return found if n_lost * 100 < len(data) and clear and _is_korean(found.text) else None
