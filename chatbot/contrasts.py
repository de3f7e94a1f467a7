"""Whether two lines of one pattern are about two things, told by one word: left and right. Pure.

Knows lines of text only. What one word may be here is too little for `chatbot.subjects`, which
counts the words that lines have in common: a letter, a syllable, "in" and "out".
"""

from __future__ import annotations

import re
from functools import lru_cache

from chatbot.line_values import keys, name_keys, values
from chatbot.proper_names import korean_stem
from chatbot.subjects import among, topic
from chatbot.words import word_groups, word_set
from retrieval.words import STOP_TERMS, lexical_terms

_WORD = re.compile(r"[a-z]+(?=['’]s\b)|[a-z]+(?:['’](?!s\b)[a-z]+)?|[가-힣]+", re.IGNORECASE)
_LOOSE = frozenset("은는이가을를의에")
"""Particles whose word was a value or is written in Latin letters."""
_PARTICLE = re.compile(r"(?:은|는|이|가|을|를|에|의|도|엔|에는|에서|에서는)\Z")
_LETTER_A = re.compile(r"(?<=\w )A(?![A-Za-z'’])|A(?=\s?[가-힣])")
"""No article: those in capitals begin a sentence."""
_OF_SPEAKER = re.compile(
    r"\b(?:I|[Mm]y|[Oo]ur|[Ww]e)\b|(?:^|\s)(?:제|내|저|저는|제가|나|나는|내가|우리)(?=\s)"
)
_OF_THEIRS = re.compile(
    r"\b(?:says?|said|told (?:me|us)|tells me)\b.*\b(?:her|his|their) \w", re.IGNORECASE
)
"""Told by somebody of their own things."""
_PERSONS = frozenset(("my", "our", "your", "his", "her", "their", "its"))


def contrast(line: str, old: str) -> bool:
    """Whether what the two lines say something of differs by opposites, or by a letter: plan A
    and plan B. Such lines stand beside each other even if one sounds like a correction."""
    mine, theirs = _own(_head(line), old), _own(_head(old), line)
    letters = [(a, b) for a in mine for b in theirs if _is_letter(a) and _is_letter(b)]
    # "a" and "i" are words as well.
    lettered = any({"a", "i"}.isdisjoint(pair) or set(pair) == {"a", "b"} for pair in letters)
    if lettered or _of_other_values(line, old) or _qualified_otherwise(line, old):
        return True
    return any(
        # "Her" may be the one of the line before: then it has other words beside it.
        a in group and b in group and (a not in _PERSONS or (len(mine) == len(theirs) == 1))
        for group in _groups()
        for a in mine
        for b in theirs
    )


def of_two_subjects(line: str, old: str) -> bool:
    """Whether each names something before its value that the other does not: too much for lines
    of which none says that it corrects the other."""
    mine, theirs = _own(_head(line), old), _own(_head(old), line)
    mine, theirs = mine - word_set("attributes"), theirs - word_set("attributes")
    told = any(map(_tells, mine)) and any(map(_tells, theirs))
    return told or _named_by_values(line, old) or contrast(line, old)


def of_another_person(line: str, old: str, value: str) -> bool:
    """Whether one line tells of the speaker and the other of somebody by name, as "Tom says he is
    36" beside "I'm 34". `value` is what the line tells; that may be a name as well."""
    if _OF_THEIRS.search(line) and not _OF_THEIRS.search(old):
        return True
    head = topic(line)
    if not _OF_SPEAKER.search(old) or _OF_SPEAKER.search(head):
        return False
    named = [v for v in values(head) if v.kind == "name" and v.of != "place"]
    told = name_keys(old) | keys(value)
    return any(v.key not in told and v.text not in value and value not in v.text for v in named)


def _qualified_otherwise(line: str, old: str) -> bool:
    """ "5 euros on weekends" says nothing about what it costs on weekdays."""
    for group in _qualifiers():
        mine, theirs = (
            {n for n, words in enumerate(group) if words & set(_WORD.findall(text.lower()))}
            for text in (line, old)
        )
        if mine and theirs and mine.isdisjoint(theirs):
            return True
    return False


def _of_other_values(line: str, old: str) -> bool:
    """ "Monday's class is in room 4" tells of Monday, so that there is another one of Friday."""
    mine, theirs = keys(line) - keys(old), keys(old) - keys(line)
    if min(len(mine), len(theirs)) < 2:
        return False
    return _named_by_values(line, old)


def _named_by_values(line: str, old: str) -> bool:
    """ "Monday is a holiday" says nothing against that of Tuesday."""
    mine, theirs = keys(line) - keys(old), keys(old) - keys(line)
    return bool(keys(topic(line)) & mine and keys(topic(old)) & theirs)


@lru_cache(maxsize=16_384)
def _own(part: str, other: str) -> frozenset[str]:
    """The words of a part of one line that the other line has nowhere."""
    theirs = _words(other)
    return frozenset(word for word in _words(part) if not among(word, theirs))


@lru_cache(maxsize=16_384)
def _words(text: str) -> frozenset[str]:
    """Stems of all words, also of those of one letter; without the values but for names."""
    for value in values(text):
        if value.kind not in ("name", "id"):
            text = text.replace(value.text, " ")
    stems = {_stem(word) for word in _WORD.findall(text) if word not in _LOOSE}
    return frozenset(stems - word_set("openers") | set(_LETTER_A.findall(text)))


def _stem(word: str) -> str:
    if "가" <= word[0] <= "힣":
        return _korean_stem(word)
    folded = word.lower()
    terms = lexical_terms(folded) if len(folded) > 1 and not _is_listed(folded) else ()
    return terms[-1] if terms else folded


def _korean_stem(word: str) -> str:
    stem = korean_stem(word)
    return _PARTICLE.sub("", stem) or stem


def _is_listed(word: str) -> bool:
    return word in STOP_TERMS or any(word in group for group in _groups())


def _head(line: str) -> str:
    """What stands before the verb; before the value if there is no telling where the verb is, and
    all of it without a value."""
    found = topic(line)
    if found:
        return found
    places = [at for value in values(line) if (at := line.find(value.text)) >= 0]
    return line[: min(places)] if places else line


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii()


def _tells(word: str) -> bool:
    return word not in STOP_TERMS


@lru_cache(maxsize=1)
def _groups() -> tuple[frozenset[str], ...]:
    return tuple(
        frozenset(_korean_stem(word) if "가" <= word[0] <= "힣" else word for word in group)
        for group in word_groups("contrasts")
    )


@lru_cache(maxsize=1)
def _qualifiers() -> tuple[tuple[frozenset[str], ...], ...]:
    """Of each line of the file the things, each with the words for it."""
    forms = ("", "은", "는", "이", "가", "에", "에는", "엔", "의", "도")
    return tuple(
        tuple(
            frozenset(word + form for word in words.split("/") for form in forms) for words in group
        )
        for group in word_groups("qualifiers")
    )
