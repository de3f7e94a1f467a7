"""Text of code pages beside the Western one, which would read as it: its letters tell. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set

_TURKISH = frozenset("çÇğĞıİöÖşŞüÜâÂîÎûÛ")
_NOT_WESTERN = frozenset("ğĞışŞİ")
"""Those that Western languages would have to write as the rare ð, ý and þ of Icelandic."""
MIN_TELLING_SHARE = 0.15
MIN_DISTINCT, MIN_SHARE = 3, 0.02
"""So many different accented letters of a language must be there, and so many for each plain one:
fewer also stand in foreign names."""
_PLAIN = re.compile(rb"[A-Za-z]")

# The accented letters of languages. Text that has all of its own from one of the first ones is
# Western; these come first, since most such files are.
_WESTERN = tuple(
    frozenset(letters + letters.upper().replace("ß", ""))
    for letters in (
        "àâçéèêëîïôöùûüÿœ",  # French
        "äöüßéèàçñô",  # German, with what it borrows
        "áéíóúüñçàèòïª",  # Spanish and Catalan
        "áàâãéêíóôõúç",  # Portuguese
        "àèéìíîòóùú",  # Italian
        "åäöéàüáæøóòôíúñçãšž",  # Swedish, Finnish, Danish, Norwegian, and names
        "áðéíóúýþæö",  # Icelandic
        "áðíóúýæø",  # Faroese
        "éèëïóöüáíúêàçô",  # Dutch
        "äöõüšž",  # Estonian
        "áéíóúâêîôûŵŷëïöüàèìò",  # Irish, Welsh and Scottish
    )
)
_OTHERS = tuple(
    (encoding, frozenset(letters + letters.upper()))
    for encoding, letters in (
        ("cp1250", "ąćęłńóśźż"),  # Polish
        ("cp1250", "áčďéěíňóřšťúůýž"),  # Czech
        ("cp1250", "áäčďéíĺľňóôŕšťúýž"),  # Slovak
        ("cp1250", "áéíóöőúüű"),  # Hungarian
        ("cp1250", "čćđšž"),  # Croatian, Bosnian, Slovene
        ("cp1250", "ăâîşţ"),  # Romanian
        ("cp1257", "ąčęėįšųūž"),  # Lithuanian
        ("cp1257", "āčēģīķļņšūž"),  # Latvian
    )
)
_SIGN_IN_WORD = re.compile("[^\\W\\d_][¡¢£¤¥¦¯±²³¹º¼½¾¿][^\\W\\d_]")


def meant_encoding(data: bytes) -> str:
    """ "cp1250", "cp1254" or "cp1257" where all accented letters are of one language of it, and
    not of one Western language; else "cp1252"."""
    if _is_turkish(data):
        return "cp1254"
    western = _letters(data, "cp1252")
    is_western = western is not None and _is_western(western.keys())
    if is_western and not _SIGN_IN_WORD.search(data.decode("cp1252")):
        return "cp1252"
    n_plain = len(_PLAIN.findall(data))
    for encoding, letters in _OTHERS:
        found = _letters(data, encoding)
        if found is None or len(found) < MIN_DISTINCT or not letters >= found.keys():
            continue
        if found.total() >= MIN_SHARE * n_plain:
            return encoding
    return "cp1252"


def _is_western(letters: Set[str]) -> bool:
    if "õ" in letters and letters.isdisjoint("ãä"):
        return False  # Portuguese and Estonian have more of these; it is the ő of Hungarian
    return any(known >= letters for known in _WESTERN)


def _letters(data: bytes, encoding: str) -> Counter[str] | None:
    """How often each letter beyond ASCII occurs; None where the bytes are not of the encoding."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return Counter(letter for letter in text if not letter.isascii() and letter.isalpha())


def _is_turkish(data: bytes) -> bool:
    """All accented letters are Turkish, and enough of them are not Western."""
    found = _letters(data, "cp1254")
    if not found or not found.keys() <= _TURKISH:
        return False
    told = sum(n for letter, n in found.items() if letter in _NOT_WESTERN)
    return told >= MIN_TELLING_SHARE * found.total()
