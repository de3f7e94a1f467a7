"""Whether a summary gives what somebody does to the one of whom its source says it. Knows texts.

A clause that begins with a person is compared with the clauses of the source that say the same:
refused is only what each of them says of another person, and none near the one that is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from chatbot.gate_binding import said
from chatbot.proper_names import english_names, is_korean_given_name
from chatbot.subjects import among, subject
from retrieval.sentences import sentences

_CLAUSE = re.compile(
    r"[;:,]\s|\s(?:and|but|while|whereas|so)\s"
    r"|(?<=[고며])\s(?!싶|있|계|나)|(?<=지만)\s|(?<=는데)\s"
)
_DOER = re.compile(
    r"^(?:(?:[Mm]y|[Oo]ur|[Tt]he user['’]s|[Tt]heir|[Hh]is|[Hh]er)\s[a-z]+\s)?"
    r"([A-Z][a-z]+)\s(?=[a-z])"
)
_DOER_KO = re.compile(r"^(?:\S+\s)?([가-힣]{2,4}?)(?:이가|이는|께서는|께서|[은는이가])\s")
_KIN_OF = re.compile(r"\b([A-Z][a-z]+)['’]s ([a-z]+) ([A-Z][a-z]+)\b")
_LEAST = 2
"""Words of a clause beside the person; of fewer nothing can be told."""
_SHARE = 0.6
_KIN_KO = frozenset(
    ("엄마", "아빠", "어머니", "아버지", "어머님", "아버님", "남편", "아내", "동생", "여동생",
     "남동생", "오빠", "언니", "누나", "형", "이모", "고모", "삼촌", "할머니", "할아버지", "아들")
)  # fmt: skip


def done_by_somebody_else(text: str, source: str) -> Iterator[str]:
    """ "Leo drives the van" where the source has "Ines drives the van", not near Leo's name."""
    names = frozenset(english_names(source))
    for clause in _clauses(text):
        who = _doer(clause, names)
        if not who or who not in source:
            continue
        terms = subject(clause) - {who.casefold(), who}
        if len(terms) < _LEAST:
            continue
        holders = _holders(terms, source, names)
        # Whom "he" and "she" mean is said in the sentence before, or in the same.
        if holders and all(doer and doer != who and who not in near for doer, near in holders):
            yield f"{clause[:40]}: {holders[0][0]}"


def kin_of_another(text: str, source: str) -> Iterator[str]:
    """ "Ian's cousin Petra" where the source has "Carol's cousin Petra"."""
    known = set(_KIN_OF.findall(source))
    for owner, kin, name in dict.fromkeys(_KIN_OF.findall(text)):
        others = {o for o, k, n in known if (k, n) == (kin, name)}
        if others and owner not in others:
            yield f"{owner}'s {kin} {name}"


def _doer(clause: str, names: frozenset[str]) -> str:
    """The person whom a clause begins with, "" if that is none by name."""
    if found := _DOER.match(clause):
        return found.group(1) if found.group(1) in names else ""
    found = _DOER_KO.match(clause)
    named = found and (found.group(1) in _KIN_KO or is_korean_given_name(found.group(1)))
    return found.group(1) if found and named else ""


def _holders(terms: frozenset[str], source: str, names: frozenset[str]) -> list[tuple[str, str]]:
    """The clauses of the source that say nearly all of it: each with its doer, and with what
    stands around it."""
    found = []
    for clause, near in _known(source):
        about = subject(clause)
        shared = sum(among(term, about) for term in terms)
        if shared >= max(_LEAST, _SHARE * len(terms)):
            found.append((_doer(clause, names), near))
    return found


@lru_cache(maxsize=8)
def _clauses(text: str) -> tuple[str, ...]:
    parts = (part.strip() for sentence in said(text) for part in _CLAUSE.split(sentence))
    return tuple(part for part in parts if part)


@lru_cache(maxsize=8)
def _known(source: str) -> tuple[tuple[str, str], ...]:
    """The clauses of a source, each with its sentence and the one before it."""
    found: list[tuple[str, str]] = []
    for line in source.splitlines():
        parts = [s for s in sentences(line) if s.strip()]
        for n, sentence in enumerate(parts):
            near = " ".join(parts[max(0, n - 1) : n + 1])
            found += [(part.strip(), near) for part in _CLAUSE.split(sentence) if part.strip()]
    return tuple(found)
