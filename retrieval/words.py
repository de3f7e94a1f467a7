"""Text to the terms that keyword search and alignment compare. Knows no document and no index.

Hangul, kana and Han have no spaces between words, or particles glued to them, so their runs become
every character and every pair of neighbours: `서울에서` holds `서울`. Other words are taken whole,
with the plain English endings removed.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_GLUED = "가-힣\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_RUN = re.compile(f"[{_GLUED}]+|[^\\W{_GLUED}_]+")
_HANGUL = re.compile("[가-힣ㄱ-ㅣ]")
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\w{3,}")
_LETTER = re.compile(r"[^\W\d_]")
_ASCII_WORDS = "".join(chr(i).lower() if _WORD.match(chr(i)) else " " for i in range(128))
"""ASCII in lower case with spaces in the place of what is not of a word."""

# Words that say how a question is put, not what it is about. They still count when they match,
# but they alone do not make a passage relevant.
_STOP_TEXT = """
    a about after all also am an and any are as at be because been before being between both
    but by can could did do doe does doing done during each for from further get give had ha
    has have having he her here hi him his how i if in into is it its just let made make many
    may me might more most much must my no nor not now of off on once one only or other our
    out over own please same say she should show so some such tell than that the their them
    then there these they thi this those through to too under until up use very wa was we were
    what when where which while who whom whose why will with would you your
    무엇 무엇이 어떤 어디 누구 언제 어떻 떻게 얼마 인가 는가 은가 나요 까요
    니까 습니 입니 합니 하는 하여 해서 했는 이며 에서 으로 에게 대해 대한 있는
    있다 없는 이다 것은 것이 알려 려줘
"""


def lexical_terms(text: str) -> list[str]:
    """The search terms of a text in reading order, repeats included. NFD and NFC give the same."""
    return [term for run in lexical_runs(text) for term in run]


def lexical_runs(text: str) -> list[list[str]]:
    """The same by the word that they come from: one stem, or all characters, then all pairs."""
    runs: list[list[str]] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).lower()):
        if is_glued(run):
            runs.append([*run, *(run[i : i + 2] for i in range(len(run) - 1))])
        else:
            runs.append([_stem(run)])
    return runs


def folded(text: str) -> str:
    """The words of a text in lower case with one space around each, to look for whole phrases."""
    if text.isascii():  # the same by a table, in a third of the time
        words = text.translate(_ASCII_WORDS).split()
    else:
        words = _WORD.findall(caseless(text))
    return f" {' '.join(words)} "


def caseless(text: str) -> str:
    """A text in lower case and composed, with the words that `folded` gives."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def some_words(text: str, count: int) -> list[str]:
    """Up to `count` pieces of words of a `caseless` text, from places spread over it."""
    found = (_PIECE.search(text, len(text) * place // count) for place in range(count))
    return [piece[0] for piece in found if piece]


def content_terms(text: str) -> set[str]:
    """Terms that carry meaning: no stop words, and of glued scripts the pairs only."""
    return {
        term
        for term in lexical_terms(text)
        if term not in STOP_TERMS and (len(term) > 1 or term.isdigit() or not is_glued(term))
    }


def is_glued(term: str) -> bool:
    """Whether a term is of a script whose runs are cut into characters and pairs."""
    first = term[0]
    return "가" <= first <= "힣" or "\u3041" <= first <= "\u30ff" or "\u3400" <= first <= "\u9fff"


def hangul_share(text: str) -> float:
    """Hangul letters among all letters, in [0, 1]; 0 for a text without letters."""
    text = unicodedata.normalize("NFC", text)
    letters = len(_LETTER.findall(text))
    return len(_HANGUL.findall(text)) / letters if letters else 0.0


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    """Take accents and English plural and verb endings off a word: naïve and naive are one."""
    if not word.isascii():
        plain = unicodedata.normalize("NFKD", word)
        latin = "".join(c for c in plain if not unicodedata.combining(c))
        return _stem(latin) if latin.isascii() else word
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return _verb_stem(word)


def _verb_stem(word: str) -> str:
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and any(vowel in base for vowel in "aeiouy"):
            return base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
    return word.removesuffix("e") if len(word) > 4 else word


STOP_TERMS = frozenset(
    form for word in _STOP_TEXT.split() for form in (word, _stem(word) if word.isascii() else word)
)
