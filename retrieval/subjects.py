"""Whether a statement gives one subject what its source says of another. Pure; parses no grammar:
subjects are told by their particles in Korean, and by two capitals or more in English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrieval.persons import NOT_PERSONS
from retrieval.statements import word_terms
from retrieval.values import numbers_in

MAX_CHARS = 6000
"""Of longer passages it is not asked who does what."""
_SENTENCE_END = ".!?。;\n|"
_CLAUSE_END = re.compile(
    r"[.!?。]\s+|[;\n|]+|,\s+(?:and|but|while|whereas)\b|(?<=[가-힣][고며])[,\s]+|(?<=지만)[,\s]+"
)
_KOREAN_SUBJECT = re.compile(
    r"\s*((?:[^\s,]+\s+){0,2}?[가-힣A-Za-z0-9·]{2,}?|[가-힣A-Za-z]\s+[가-힣]{2,}?)"
    r"(?:께서는|께서|은|(?<![있없하되지])는|이|가)(?=[\s,])"
)
# Two capitals at least: the first word of a sentence has one anyway.
_ENGLISH_SUBJECT = re.compile(r"\s*((?:[A-Z][\w.'’-]*\s+){2,4})(?=[a-z])")
_HANGUL = re.compile("[가-힣]")
_WORD = re.compile(r"[^\W_]+")
_COPULA = re.compile(r"(?:입니다|이었습니다|였습니다|이었다|였다|이다|이며|이고)$")
_PERSON = re.compile(
    "[김이박최정강조윤장임한오서신권황안송전홍유류고문양손배백허남심노하곽성차주우구민진지엄채원천방공현"
    "함변염여추도석선설마길연위표명기반왕금옥육인맹제모탁국어은편용][가-힣]{2}(?:\\s|$)"
)
_TITLE = re.compile(
    "(?:대왕|장군|교수|선생|의원|대표|부장|과장|팀장|사장|회장|대통령|총리|장관|박사|감독|선수|씨|님)$"
)


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    subject: str
    terms: frozenset[str]


def another_subject(statement: str, source: str) -> bool:
    """Whether the source says the rest of the statement only of another subject of its kind, and
    something else of its own ("Kim was born in Seoul. Lee was born in Busan." against "Lee was
    born in Seoul.")."""
    if len(source) > MAX_CHARS:
        return False
    own, at = _subject(statement)
    rest = _words_of(statement[at:])
    if not own or not rest:
        return False
    clauses = _clauses(source)
    counts = [sum(2 * len(word & clause.terms) > len(word) for word in rest) for clause in clauses]
    most = max(counts, default=0)
    if not most or 2 * most < len(rest):
        return False
    counted = list(zip(clauses, counts, strict=True))
    best = [clause for clause, count in counted if count == most]
    mine = [c for c, count in counted if count < most and _same(own, c.subject)]
    return bool(mine) and all(
        _of_another(clause, own, statement[at:])
        and any(_alike(own, clause.subject, (one.text, clause.text)) for one in mine)
        for clause in best
    )


def _subject(text: str) -> tuple[str, int]:
    """The words of a sentence's subject without their particle, and where the rest begins."""
    pattern = _KOREAN_SUBJECT if _HANGUL.search(text) else _ENGLISH_SUBJECT
    match = pattern.match(text)
    return (match[1].strip(), match.end()) if match else ("", 0)


def _of_another(clause: _Clause, own: str, rest: str) -> bool:
    """Whether a clause has a subject that the statement does not name, and not the statement's."""
    if not clause.subject or _same(own, clause.subject):
        return False
    its_own = set(_WORD.findall(clause.subject)).difference(_WORD.findall(own))
    return not any(word in rest for word in its_own) and own not in clause.text


def _same(a: str, b: str) -> bool:
    """Whether two subjects may be the same thing: one is part of the other."""
    if not a or not b:
        return False
    few, more = sorted((a, b), key=len)
    return set(_WORD.findall(few)) <= set(_WORD.findall(more)) or more.startswith(few)


def _alike(own: str, other: str, clauses: tuple[str, str]) -> bool:
    """Whether two subjects are of one kind: two names, two of a common word (Suwon branch, Incheon
    branch), or two of which the same is said in these clauses."""
    if not _HANGUL.search(own):
        return not _HANGUL.search(other)
    if len(own) > 2 and own[-2:] == other[-2:]:
        return True
    if _is_person(own) and _is_person(other):
        return True
    mine, its = (_COPULA.sub("", _WORD.findall(text)[-1]) for text in clauses)
    return mine[:2] == its[:2] or mine[:1] == its[:1] in ("있", "없")


def _is_person(subject: str) -> bool:
    name = bool(_PERSON.match(subject)) and subject[:3] not in NOT_PERSONS
    return name or bool(_TITLE.search(subject))


def _words_of(text: str) -> list[frozenset[str]]:
    """The content words of a text and its numbers, each as the terms that stand for it."""
    words = [frozenset(word_terms(word)) for word in _WORD.findall(text) if not word[0].isdecimal()]
    return [word for word in words if word] + [frozenset({n}) for n in sorted(numbers_in(text))]


def _clauses(source: str) -> Sequence[_Clause]:
    """The clauses; one without a subject has that of the clause before it in its sentence."""
    cuts = [match.span() for match in _CLAUSE_END.finditer(source)]
    edges = [(0, 0), *cuts, (len(source), len(source))]
    clauses: list[_Clause] = []
    subject = ""
    for before, after in pairwise(edges):
        text = source[before[1] : after[0]]
        if source[before[0] : before[0] + 1] in _SENTENCE_END:
            subject = ""
        if _WORD.search(text):
            subject = _subject(f"{text} ")[0] or subject
            terms = frozenset(term for word in _words_of(text) for term in word)
            clauses.append(_Clause(text, subject, terms))
    return clauses
