"""Which language a text is in, by its scripts and small words. Knows no conversation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "ko", "other"]

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|(?<!\S)\S+@\S+", re.DOTALL)
_LATIN_WORD = re.compile(r"[a-zà-öø-ÿœ']+")
_HANGUL_WEIGHT = 2.5
"""A Hangul syllable holds about as much as so many Latin letters."""
_KOREAN_SHARE = 0.4
_OTHER_SHARE = 0.4
_MIN_FOREIGN_WORDS = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = _words(
    "the of and to in is that for it was with on be are this have from not at by but which you "
    "they he she his her their has had will would can what when there who were been about if "
    "its user assistant"
)
# Words of the commonest languages that share the Latin script, without those that are English.
_FOREIGN = _words(
    "el los las una que del por con para es pero como más su está le les des du est et un une "
    "dans pour qui sur avec pas ce il elle der die das und ist ein eine nicht mit für auf den "
    "dem sich von zu il gli di che è per non sono della um uma não em os da ao het een van niet "
    "ik je usuario utilisateur benutzer utente"
)


@dataclass(frozen=True, slots=True)
class ScriptShares:
    """Shares of the letters of a text, each in [0, 1]; all 0 for a text without letters."""

    hangul: float = 0.0
    latin: float = 0.0
    other: float = 0.0


def script_shares(text: str) -> ScriptShares:
    """How the letters of `text` are spread over scripts. Code, URLs and addresses are left out."""
    counts: Counter[str] = Counter()
    for letter in _CODE.sub(" ", text):
        if letter.isalpha():
            counts[_script(letter)] += 1
    weights = {**counts, "hangul": counts["hangul"] * _HANGUL_WEIGHT}
    total = sum(weights.values())
    if not total:
        return ScriptShares()
    return ScriptShares(weights["hangul"] / total, counts["latin"] / total, counts["other"] / total)


def detect(text: str, default: Language = "en") -> Language:
    """The language that most of `text` is in; `default` for a text without letters."""
    shares = script_shares(text)
    if shares.other >= max(_OTHER_SHARE, shares.hangul):
        return "other"
    if shares.hangul >= _KOREAN_SHARE:
        return "ko"
    if not shares.latin:
        return default
    return "other" if _is_foreign_latin(text) else "en"


def detect_all(texts: Iterable[str], default: Language = "en") -> Language:
    """The language of several texts together, such as the user's messages of a conversation."""
    return detect("\n".join(texts), default)


def _script(letter: str) -> str:
    if "가" <= letter <= "힣" or "ᄀ" <= letter <= "ᇿ" or "ㄱ" <= letter <= "ㆎ":
        return "hangul"
    return "latin" if letter < "\u0250" else "other"


def _is_foreign_latin(text: str) -> bool:
    words = _LATIN_WORD.findall(_CODE.sub(" ", text).lower())
    foreign = sum(word in _FOREIGN for word in words)
    english = sum(word in _ENGLISH for word in words)
    return foreign >= _MIN_FOREIGN_WORDS and foreign > english
