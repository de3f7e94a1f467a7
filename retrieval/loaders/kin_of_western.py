"""Turkish and Baltic text that would read as Western European: its letters tell. Pure."""

from __future__ import annotations

_TURKISH = frozenset("çÇğĞıİöÖşŞüÜâÂîÎûÛ")
_LITHUANIAN = frozenset("ąĄčČęĘėĖįĮšŠųŲūŪžŽ")
_LATVIAN = frozenset("āĀčČēĒģĢīĪķĶļĻņŅšŠūŪžŽ")
# Encoding, its language's letters, and those of them that Western languages would have to write as
# the rare ð, ý and þ of Icelandic.
_KIN = (
    ("cp1254", _TURKISH, frozenset("ğĞışŞİ")),
    ("cp1257", _LITHUANIAN, frozenset("šŠžŽ")),
    ("cp1257", _LATVIAN, frozenset("šŠžŽ")),
)
MIN_TELLING_SHARE = 0.15


def meant_encoding(data: bytes) -> str:
    """ "cp1254" or "cp1257" where all accented letters are of one such language, and enough of
    them are not Western; else "cp1252"."""
    for encoding, letters, telling in _KIN:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        accented = [letter for letter in text if not letter.isascii() and letter.isalpha()]
        told = sum(letter in telling for letter in accented)
        if accented and letters.issuperset(accented) and told >= MIN_TELLING_SHARE * len(accented):
            return encoding
    return "cp1252"
