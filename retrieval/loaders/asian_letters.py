"""Whether decoded text is Korean or Japanese or bytes misread as such: its letters tell. Pure."""

from __future__ import annotations

import re
from collections import Counter

# The most frequent syllables of Korean prose. In every Korean text they make up a quarter or
# more of all; in Chinese, Japanese or Johab bytes that are misread as CP949 they do not.
_FREQUENT = frozenset("이다의는에을하고가은로한를기사지서도인자대리정시부제나일해그어조")
FEW_HANGUL = 30
"""Too few to count which are frequent."""
_MARKS = frozenset("·…‘’“”「」『』《》〈〉【】※→")
HANGUL = re.compile("[가-힣]")
_OF_JAPANESE = re.compile("[\t\n\r\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]")
_HANJA = re.compile("[\u4e00-\u9fff\uf900-\ufaff]")


def is_korean(text: str) -> bool:
    letters = foreign_letters(text)
    hangul = Counter({letter: n for letter, n in letters.items() if "가" <= letter <= "힣"})
    n_foreign, n_hangul = letters.total(), hangul.total()
    if n_hangul * 3 < n_foreign or not n_hangul:
        return False
    if sum(n for letter, n in hangul.items() if _is_rare(letter)) * 5 > n_hangul:
        return False
    mostly = n_hangul * 10 >= n_foreign * 8
    if mostly and n_hangul < FEW_HANGUL:
        return True
    n_frequent = sum(hangul[letter] for letter in _FREQUENT)
    n_korean = n_hangul + sum(n for letter, n in letters.items() if _HANJA.match(letter))
    return n_frequent * 10 >= n_hangul and (mostly or n_korean * 10 >= n_foreign * 8)


def _is_rare(hangul: str) -> bool:
    """KS X 1001 has the 2,350 syllables that Korean really uses, two bytes each; misread bytes hit
    the others."""
    return len(hangul.encode("euc-kr", "ignore")) != 2


def rare_and_usual_hangul(text: str) -> tuple[int, int]:
    """How many syllables of each kind a text has that is ASCII, marks and few syllables; else
    none."""
    counts = Counter(text)
    others = {c: n for c, n in counts.items() if not c.isascii() and c not in _MARKS}
    n_others = sum(others.values())
    if n_others >= FEW_HANGUL or not all(map(HANGUL.match, others)):
        return 0, 0
    n_rare = sum(n for letter, n in others.items() if _is_rare(letter))
    return n_rare, n_others - n_rare


def is_japanese(text: str) -> bool:
    """Kana have the same codes in EUC-JP and in Chinese EUC, but only Japanese is full of them."""
    letters = foreign_letters(text)
    n_kana = sum(n for letter, n in letters.items() if "\u3041" <= letter <= "\u30fe")
    return n_kana * 10 >= max(10, 3 * letters.total())


def foreign_letters(text: str) -> Counter[str]:
    """How often each letter beyond ASCII occurs; counting all characters first is quick."""
    counts = Counter(text)
    return Counter({c: n for c, n in counts.items() if not c.isascii() and c.isalpha()})


def is_hangul(text: str) -> bool:
    return len(HANGUL.findall(text)) * 20 >= 19 * len(text)


def is_kana(text: str) -> bool:
    """Japanese without any ASCII, which has no NULs that would tell that it is UTF-16."""
    return len(_OF_JAPANESE.findall(text)) * 20 >= 19 * len(text) and is_japanese(text)
