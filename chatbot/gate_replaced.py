"""Whether a summary puts a word in the place of another one of its source. Knows texts only.

Each check asks for both: that the source lacks what the summary says, and that what the source says
in its place is missing. So a paraphrase passes, and an invention beside the truth may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from chatbot.gate_binding import said
from chatbot.proper_names import korean_stem
from chatbot.subjects import subject
from chatbot.words import patterns, word_groups
from retrieval.words import content_terms

_DENIAL = patterns("denial")
_LIKES = re.compile(r"\b(?:likes?|loves?|enjoys?|prefers?)\b|좋아하|좋아해|좋아한|선호|즐기|즐긴")
_DISLIKES = re.compile(
    r"\b(?:hates?|dislikes?|fears?|(?:afraid|scared|terrified) of|can['’]t stand)\b"
    r"|(?:n['’]t|not|never) (?:really )?(?:like|love|enjoy)\b|싫어|무서워|두려워|겁[을이내나먹]"
    r"|(?:좋아하|선호하|즐기)지 ?(?:않|못)|안 좋아"
)
_ABLE = re.compile(
    r"\b(?:can(['’]t\b|not\b| not\b)?"
    r"|(?:could|will|is able to|are able to)(n['’]t\b| not\b)?) ([a-z]+)"
)
_UNABLE = re.compile(r"\b(?:unable to|not able to|won['’]t) ([a-z]+)")
_NOT = re.compile(r"\b([a-z]{3,}), not ([a-z]{3,})\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[;:.!?]\s|,\s|\s(?:and|but)\s")
_WORD_END = r"(?=[은는이가을를의와과도에로께한랑만님네들까부]|으로|[^A-Za-z가-힣]|\Z)"
"""A Korean particle, or no letter: 딸 is no 딸기."""
_NAMELIKE = re.compile(r"(?<![가-힣\d])[가-힣]{4,6}(?![가-힣])")
_NOUN_LENGTHS = (4, 5)
_VERBAL = re.compile(r"[고며다요서는한할된될해지게면던려니까네]$")
_LEAST_SHARED = 2


def put_in_place(text: str, source: str) -> Iterator[str]:
    """Words of a group in the place of others of it: "father" where the source has "mother"."""
    for group in _groups():
        stated = [bool(one.search(text)) for one in group]
        if not any(stated):
            continue
        known = [bool(one.search(source)) for one in group]
        left_out = [k and not s for k, s in zip(known, stated, strict=True)]
        for one, is_stated, is_known in zip(group, stated, known, strict=True):
            found = one.search(text)
            if is_stated and not is_known and any(left_out) and found:
                yield found.group()


@cache
def _groups() -> tuple[tuple[re.Pattern[str], ...], ...]:
    return tuple(tuple(_pattern(member) for member in group) for group in word_groups("replaced"))


def _pattern(member: str) -> re.Pattern[str]:
    words = "|".join(re.escape(word).replace("_", r"\s?") for word in member.split("/"))
    return re.compile(rf"(?<![A-Za-z가-힣])(?:{words}){_WORD_END}", re.IGNORECASE)


def near_misses(text: str, source: str) -> Iterator[str]:
    """Korean nouns that the source lacks, all but one of whose syllables are a word of it.

    Only one of the first two may differ: later ones are endings as often as not.
    """
    known = {stem for word in _NAMELIKE.findall(source) if (stem := korean_stem(word))}
    for word in dict.fromkeys(_NAMELIKE.findall(text)):
        stem = korean_stem(word)
        if len(stem) not in _NOUN_LENGTHS or _VERBAL.search(stem) or stem[:2] in source:
            continue
        alike = (other for other in known if len(other) == len(stem) and other[2:] == stem[2:])
        if any((a[0] == stem[0]) != (a[1] == stem[1]) for a in alike):
            yield stem


def feelings_reversed(text: str, source: str) -> Iterator[str]:
    """What the source only fears or dislikes and the summary likes, or the other way round."""
    for sentence in said(text):
        for mine, other in ((_LIKES, _DISLIKES), (_DISLIKES, _LIKES)):
            found = mine.search(sentence)
            if not found or other.search(sentence):
                continue
            terms = _without_feeling(sentence)
            shared = [(len(terms & _without_feeling(s)), s) for s in said(source)]
            turned = any(
                n >= _LEAST_SHARED and other.search(s) and not mine.search(s) for n, s in shared
            )
            if turned and not any(n and mine.search(s) for n, s in shared):
                yield found.group()


def _without_feeling(sentence: str) -> frozenset[str]:
    return subject(_LIKES.sub(" ", _DISLIKES.sub(" ", sentence)))


def ability_reversed(text: str, source: str) -> Iterator[str]:
    """ "Greta can come" where the source only has "Greta can't come"."""
    if not _ABLE.search(text) and not _UNABLE.search(text):
        return
    known = [(a, content_terms(s)) for s in said(source) if (a := _abilities(s))]
    for sentence in said(text):
        terms = content_terms(sentence)
        for verb, able in _abilities(sentence):
            shared = [(len((words & terms) - {verb}), found) for found, words in known]
            nearest = max((n for n, _ in shared), default=0)
            stated = {one for n, found in shared if n and n == nearest for one in found}
            if (verb, not able) in stated and (verb, able) not in stated:
                yield f"{'can' if able else 'cannot'} {verb}"


def _abilities(sentence: str) -> set[tuple[str, bool]]:
    """Verbs behind "can" and the like, each with whether it is affirmed."""
    lower = sentence.lower()
    found = {(verb, not (can or other)) for can, other, verb in _ABLE.findall(lower)}
    return found | {(verb, False) for verb in _UNABLE.findall(lower)}


def excluded(text: str, source: str) -> Iterator[str]:
    """What the source excludes as in "chocolate, not strawberry", without what it wants instead."""
    lower, plain = text.lower(), _NOT.sub(r"\1", source).lower()
    for wanted, other in dict.fromkeys(_NOT.findall(source.lower())):
        if _has(lower, wanted) or not _has(lower, other) or _has(plain, other):
            continue
        if not any(_DENIAL.search(s) for s in _CLAUSE.split(lower) if _has(s, other)):
            yield other


def _has(text: str, word: str) -> bool:
    return bool(re.search(rf"\b{re.escape(word)}\b", text))
