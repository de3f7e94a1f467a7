"""Whether a summary joins what its source joins: no denial turned round, no values exchanged.

Knows texts only. What cannot be told from the words is let through: paraphrase is free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from chatbot.line_values import Value, values
from chatbot.subjects import subject
from chatbot.words import patterns
from retrieval.sentences import sentences
from retrieval.words import content_terms

_DENIAL = patterns("denial")
_DOUBT = patterns("denial_like")
_CLAUSE = re.compile(
    r"[;:]\s|,\s|\s(?:and|but|while|whereas)\s|(?<=[고며])\s|(?<=지만)\s|(?<=는데)\s|(?<=서)\s"
)
_LEAST_TERMS = 3
_NOT_SAID = content_terms("user assistant says told 사용자는 사용자 도우미 도우미는")
_SAME = 0.8
_DECIDED = re.compile(r"(?<!안 )(?<!못 )(?<![가-힣])([가-힣]{2,6}?)기로(?![가-힣])")
_DECIDED_AGAINST = re.compile(r"(?<![가-힣])([가-힣]{2,6}?)지 (?:않|말)기로")
_AGED = re.compile(r"\b([A-Z][a-z]+)(?: [A-Z][a-z]+)?, (\d{1,2})(?=[,.])")
_IS_ME = r"\bI['’]?m |\bI am |\bname is |\bname['’]s |\bcall me |저는 |제 이름은 |나는 "
_PREFERRED = re.compile(
    r"\b([a-z]{3,})s?\b (?:over|rather than|instead of|and not|but not) (?:the |an? )?"
    r"([a-z]{3,})\b",
    re.IGNORECASE,
)
_PREFERRED_KO = re.compile(
    r"([가-힣]{1,6}?)(?:보다|대신|말고)(?:는)? ([가-힣]{1,6}?)(?:[을를이가은는로]|으로)(?![가-힣])"
)


def turned_round(text: str, source: str) -> Iterator[str]:
    """What the source affirms and the summary denies, or the other way round.

    A clause counts only if nearly all its words stand in one clause of the source.
    """
    known = [(content_terms(s), s) for s in _clauses(source)]
    for clause in _clauses(text):
        terms = content_terms(_DENIAL.sub(" ", clause)) - _NOT_SAID
        if len(terms) < _LEAST_TERMS or len(clause.split()) < _LEAST_TERMS:
            continue
        alike = [s for found, s in known if len(terms & found) >= _SAME * len(terms)]
        denied = bool(_DENIAL.search(clause))
        # Other words may deny as well; they are not counted against a summary.
        agrees = any(bool(_DENIAL.search(s)) == denied or _DOUBT.search(s) for s in alike)
        if alike and not agrees and (denied or not _DOUBT.search(clause)):
            yield clause if len(clause) <= 40 else f"{clause[:40]}…"


def decided_otherwise(text: str, source: str) -> Iterator[str]:
    """Korean decisions turned round: 빌리기로 where the source only has 빌리지 않기로."""
    for verb in dict.fromkeys(_DECIDED.findall(text)):
        denied = re.search(rf"(?:{verb}지 (?:않|말)|(?:안|못) {verb})", source)
        if denied and verb not in re.sub(rf"{verb}지 (?:않|말)|(?:안|못) {verb}", " ", source):
            yield f"{verb}기로"
    for verb in dict.fromkeys(_DECIDED_AGAINST.findall(text)):
        if verb in _DECIDED.findall(source) and not re.search(
            rf"{verb}지 (?:않|말|마|못)|(?:안|못) {verb}", source
        ):
            yield f"{verb}지 않기로"


def exchanged(text: str, source: str) -> Iterator[str]:
    """Values of one kind that stand in each other's place: each with the subject of the other."""
    near = _near(source)
    said = [(subject(s), {v.key for v in values(s)}) for s in near]
    stated = [(subject(c), v) for c in _clauses(text) for v in values(c)]
    for index, (topic, value) in enumerate(stated):
        for other_topic, other in stated[index + 1 :]:
            if value.kind != other.kind or value.key == other.key:
                continue
            at = [about for about, keys in said if value.key in keys]
            other_at = [about for about, keys in said if other.key in keys]
            crossed = _any_common(topic, other_at) and _any_common(other_topic, at)
            straight = _any_common(topic, at) or _any_common(other_topic, other_at)
            if crossed and not straight:
                yield f"{value.text}, {other.text}"


def _any_common(topic: frozenset[str], others: Sequence[frozenset[str]]) -> bool:
    return any(topic & other for other in others)


def of_another(text: str, source: str) -> Iterator[str]:
    """Figures that the summary gives to a person of whom the source says other ones."""
    near = [(values(s), s) for s in _near(source)]
    for person, figure in _figures_of_persons(text):
        if re.search(rf"(?:{_IS_ME}){re.escape(person)}", source, re.IGNORECASE):
            continue  # the user, whose figures stand beside "I"
        about = [found for found, s in near if person in s]
        own = {v.key for found in about for v in found if v.kind == figure.kind}
        elsewhere = any(
            figure.key in {v.key for v in found} for found, s in near if person not in s
        )
        if own and figure.key not in own and elsewhere:
            yield f"{figure.text} of {person}"


def _figures_of_persons(text: str) -> Iterator[tuple[str, Value]]:
    """Ages behind names, and figures with a unit in clauses that name one person only."""
    for match in _AGED.finditer(text):
        yield match.group(1), Value("figure", match.group(2), match.group(2))
    for clause in _clauses(text):
        found = values(clause)
        names = [value.text for value in found if value.kind == "name"]
        placed = {value.text for value in found if value.of == "place"}
        if len(names) == 1 and names[0] not in placed:
            figures = [value for value in found if value.kind.startswith("figure ")]
            kinds = [value.kind for value in figures]
            # "From Petra for 150 against 320 elsewhere" does not say which is whose.
            yield from ((names[0], value) for value in figures if kinds.count(value.kind) == 1)


def reversed_preferences(text: str, source: str) -> Iterator[str]:
    """ "Planes over trains" where the source has "trains over planes"."""
    for pattern, flip in ((_PREFERRED, False), (_PREFERRED_KO, True)):
        stated = {_stems(pair, flip) for pair in pattern.findall(source)}
        for pair in pattern.findall(text):
            better, worse = _stems(pair, flip)
            if (worse, better) in stated and (better, worse) not in stated:
                yield f"{pair[0]}, {pair[1]}"


def _stems(pair: tuple[str, str], flip: bool) -> tuple[str, str]:
    first, second = (word.lower().removesuffix("s") for word in pair)
    return (second, first) if flip else (first, second)


@lru_cache(maxsize=8)
def said(text: str) -> tuple[str, ...]:
    """The sentences of a text. Kept for the few texts that many checks compare at a time."""
    return tuple(sentences(text))


@lru_cache(maxsize=8)
def _clauses(text: str) -> tuple[str, ...]:
    parts = (part.strip() for s in said(text) for part in _CLAUSE.split(s))
    return tuple(part for part in parts if part)


@lru_cache(maxsize=8)
def _near(source: str) -> list[str]:
    """Each sentence of the source together with the one before it in the same line."""
    found: list[str] = []
    for line in source.splitlines():
        parts = [part for part in sentences(line) if part.strip()]
        found += [" ".join(parts[max(0, n - 1) : n + 1]) for n in range(len(parts))]
    return found
