"""Whether a summary gives traits to those who have them and denies them of those who lack them.

Knows texts only. "Mina is allergic, Theo is not" is refused where the source has it the other way
round; a trait that the source leaves open, asks about or hopes for is free.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

from chatbot.gate_persons import kin_names, kin_words
from chatbot.line_values import DATE_NAMES
from chatbot.proper_names import english_names, korean_names, person_or_place
from chatbot.words import lines
from retrieval.sentences import sentences

_SPEAKER = re.compile(r"^(?:User|Assistant|사용자|도우미):\s")
_CLAUSE = re.compile(
    r"[,;:]\s|\s(?:but|while|whereas)\s|\sand\s(?!(?:my|the|his|her|their)?\s?[\w ]{0,12}"
    r"[A-Z]\w+ (?:are|both|were|have|do|will both)\b)"
    r"|(?<=[고며])\s(?!싶|있|계)|(?<=지만)\s|(?<=는데)\s"
)
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|no|never|cannot|neither|nor|without|unable to|nobody|none)|n['’]t|\bfail\w*)"
    r"(?:\s\S+){0,3}\s$|(?:못|안)\s$",
    re.IGNORECASE,
)
_DENIED_BEHIND = re.compile(
    r"^(?!이라|라서|때문)[가-힣]{0,3}\s(?:전혀 |아예 |같은 건 |[가-힣]{1,2}지 )?"
    r"(?:없|않|아니|아닌|아닙|못|안 )"
    r"|^[이가]?\s?아니"
)
_DENIED = re.compile(
    r"\b(?:not|no|never|neither|nor)\b|n['’]t\b|없|않|못|아니|아닙|안 ", re.IGNORECASE
)
_OPEN = re.compile(
    r"\?|\b(?:if|whether|might|may|maybe|perhaps|hop\w+|should|would|could|want\w*|wish\w*|unless"
    r"|unsure|probably|think\w*|before|until|once|yet)\b|면\s|[을를]까|할지|싶|려고|아직|같아|지도",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"^(?:\S+\s){0,4}?\S+ (?:is|are|was|does|do|can|will|has)(?: not|n['’]t)?(?: either| too)?\W*$"
    r"|^not \S+\W*$|^(?:\S+\s){1,3}not\W*$|^(?:so|neither|nor) (?:is|are|does|will) "
    r"|^(?:\S+\s){0,3}?\S+[은는도이가]\s(?:전혀\s)?(?:없|아니|아닙|안 그|그렇지|않|있|마찬가지)"
    r"\S*\W*$"
)
"""A clause that says "so" or "not so" of somebody, of what was spoken of just before."""
_GOES_ON = re.compile(r"^(?:who\b|is\b|are\b|was\b|has\b|will\b|does\b|do\b|can(?:not|['’]t)?\b)")
_USER = re.compile(
    r"\bI\b|\b[Tt]he user\b(?!['’]s)|(?<![가-힣])(?:저는|제가|저도|나는|내가|사용자[는가도])(?=\s)"
)
_NAME_END = r"(?=이?[은는이가도와과의,랑한에]|\W|$)(?![와과] 달리|처럼|보다)"
_ANYBODY = "?"


@dataclass
class _Reader:
    """Reads who has which trait out of one line; used once a line."""

    persons: dict[str, str]
    found: list[tuple[str, int, bool, bool]] = field(default_factory=list)
    """Person, number of the trait, whether it is affirmed, and whether it is left open."""

    def read(self, line: str) -> None:
        last: int | None = None
        affirmed = True
        for sentence in sentences(_SPEAKER.sub("", line)):
            before: list[str] = []
            for clause in map(_without_link, _CLAUSE.split(sentence)):
                who = _who(clause, self.persons)
                traits = [n for n, one in enumerate(_traits()) if one.search(clause)]
                if not traits and last is not None and who and _SHORT.match(clause):
                    traits = [last]
                    same = re.search("마찬가지|^so |도 그렇", clause)
                    affirmed = affirmed if same else not _DENIED.search(clause)
                elif traits:
                    affirmed = not _denied(clause, traits[-1])
                if not who and _GOES_ON.match(clause):
                    who = before[-1:] if clause.startswith("who") else before[:1]
                is_open = bool(_OPEN.search(clause) or sentence.rstrip().endswith("?"))
                self.found += [(p, n, affirmed, is_open) for n in traits for p in who or [_ANYBODY]]
                last = traits[-1] if traits else last
                before = (
                    before if clause.casefold().startswith(("unlike ", "like ")) else who or before
                )


def _without_link(clause: str) -> str:
    return re.sub(r"^(?:and|but|or|while|although|그런데|하지만)\s", "", clause.strip())


def traits_reversed(text: str, source: str) -> Iterator[str]:
    """Traits that the source gives to others, or denies of whom the summary gives them to."""
    if not any(one.search(text) for one in _traits()):
        return
    persons = _persons(source)
    known: dict[tuple[str, int], set[bool]] = defaultdict(set)
    anybody: dict[int, set[bool]] = defaultdict(set)
    for who, trait, affirmed, is_open in _read(source, source):
        stated = {True, False} if is_open else {affirmed}
        known[who, trait] |= stated
        anybody[trait] |= stated
    for who, trait, affirmed, is_open in _read(text, source):
        mine = known[who, trait] if who != _ANYBODY else anybody[trait]
        if is_open or not anybody[trait]:
            continue
        # Said of others by name, and never of somebody who is not named.
        alone = affirmed and not mine and who in persons.values() and not known[_ANYBODY, trait]
        reversed_ = mine and affirmed not in mine and not known[_ANYBODY, trait] - mine
        if reversed_ or alone:
            yield f"{'' if affirmed else 'not '}{_shown(trait, text)}: {who}"


def _shown(trait: int, text: str) -> str:
    found = _traits()[trait].search(text)
    return found.group() if found else "so"


def _denied(clause: str, trait: int) -> bool:
    """Whether a clause denies this trait; another matter of it may be denied besides."""
    found = _traits()[trait].search(clause)
    if not found:
        return False
    before, behind = clause[: found.start()], clause[found.end() :]
    inside = re.search(r"못|안 ", found.group())
    return bool(inside or _DENIED_BEFORE.search(before) or _DENIED_BEHIND.match(behind))


def _who(clause: str, persons: dict[str, str]) -> list[str]:
    """Those of whom a clause speaks in the order of their names, each under one name."""
    at: dict[str, int] = {}
    for word, person in persons.items():
        if word in clause and (found := re.search(rf"(?<![가-힣\w]){word}{_NAME_END}", clause)):
            at[person] = min(found.start(), at.get(person, len(clause)))
    first = min((m.start() for one in _traits() if (m := one.search(clause))), default=len(clause))
    # "Mina is not allergic as Theo is" says it of Mina.
    leading = {person: n for person, n in at.items() if n < first} or at
    return sorted(leading, key=leading.__getitem__) or (["user"] if _USER.search(clause) else [])


@lru_cache(maxsize=8)
def _read(text: str, source: str) -> tuple[tuple[str, int, bool, bool], ...]:
    reader = _Reader(_persons(source))
    for line in text.splitlines():
        if line.strip():
            reader.read(line)
    return tuple(reader.found)


@lru_cache(maxsize=8)
def _persons(source: str) -> dict[str, str]:
    """Names of the source, and the words of kin that belong to one name only -> that name."""
    of_kin: dict[str, set[str]] = defaultdict(set)
    for kin, name in kin_names(source):
        of_kin[kin].add(name)
    names = {*english_names(source), *korean_names(source)}
    names |= {name for own in of_kin.values() for name in own}
    persons = {
        re.escape(word): name
        for name in names
        if len(name) > 1
        and not DATE_NAMES.fullmatch(name)
        and person_or_place(name, source) != "place"
        # 김민준 is 민준 as well.
        for word in (name, name[1:] if re.fullmatch("[가-힣]{3}", name) else name)
    }
    return persons | {
        word: next(iter(own))
        for kin, own in of_kin.items()
        if len(own) == 1
        for word in kin_words(kin)
    }


@cache
def _traits() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(line, re.IGNORECASE) for line in lines("traits"))
