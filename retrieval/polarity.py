"""Whether two sentences say yes and no of the same, or opposite things. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from retrieval.words import content_terms

MIN_DENIED_WORDS = 2
"""From so many words on, a statement must say yes or no as its source does."""

_DENIAL = re.compile(
    r"\b(?:not|no|never|none|nothing|neither|without|cannot)\b|n['’]t\b"
    r"|\b(?:prohibit|forb[ai]d|bann)\w*"
    r"|(?<![가-힣])(?:안|못)\s|않|없|아니|못하|못했|금지|불가(?!피)",
    re.IGNORECASE,
)
# What looks like a denial and is none, or two that make none.
_NO_DENIAL = re.compile(
    r"\bn(?:o|ot) (?:later|more|less|fewer|only|doubt|longer than)\b|\bnot until\b|\bno\. ?(?=\d)"
    r"|뿐만? 아니라|않으면 안|않을 수 없|밖에 없|수밖에|끊임없|변함없",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[;\n]|,? (?:but|while|whereas|although|though|which|unless|except|because)\b"
    r"|(?:(?<=며)|(?<=지만|으나|는데|이고|되고|니라))[ ,]",
    re.IGNORECASE,
)
_ASIDE = re.compile(r", (?:which|who|whose|where)\b[^,;]*,", re.IGNORECASE)
_ANSWER = re.compile(r"^\s*(?:yes|no|네|예|아니요|아니오)[,.!]\s", re.IGNORECASE)
# Opposites, one pair a line: patterns of the one and the other, with a tab between.
_OPPOSITES = [
    tuple(re.compile(side, re.IGNORECASE) for side in line.split("\t"))
    for line in r"""
(?:switch|turn|power)\w* (?:\w+ )?on\b	(?:switch|turn|power)\w* (?:\w+ )?off\b
\bopen\b	\b(?:closed|shut)\b
\binclud	\bexclud
\b(?:increas|r[io]se|rising|gr[eo]w)	\b(?:decreas|f[ae]ll|drop|shr[aiu]nk)
\b(?:approv|accept|agreed to\b)	\b(?:reject|refus|declin)
\benabl	\bdisabl
\bat least\b|\bminimum\b	\bat most\b|\bmaximum\b
\b(?:mandatory|compulsory|obligatory)\b	\b(?:optional|voluntary)\b
켜[고야다두서며면져집진]|켠	끄[고는다며면지]|꺼[야두서진져집]|끈다
열려|열린 채	닫[아혀힌히]
포함	제외
증가|늘[었어린]|올랐|상승|인상	감소|줄[었어인]|내렸|하락|인하
승인|수락|찬성	반려(?![동견묘])|거부|거절|기각|반대
최대	최소
의무|필수	선택 사항|자율
""".strip().splitlines()
]
_LIMITS = re.compile(
    r"\b(?:until|after|before|from|except|unless|only|if)\b|까지|부터|이후|이전|경우|외에",
    re.IGNORECASE,
)


def contradicts(statement: str, words: Collection[frozenset[str]], source: str) -> bool:
    """Whether only one of the two denies, or they hold opposites, in what the statement is about.

    `words` are the content words of the statement. A statement of few says neither, and a source
    may deny something else in a clause of its own.
    """
    # What agrees to a question or denies it, says nothing by itself.
    statement = _ANSWER.sub("", statement)
    words = [word for word in words if not _DENIAL.search(" ".join(word))]
    if len(words) < MIN_DENIED_WORDS:
        return False
    clauses = _about(words, source)
    if not clauses:
        return False
    if bool(_denials(statement)) == bool(_denials(source)):
        return all(_opposite(statement, clause) for clause in clauses)
    said = bool(_denials(statement))
    return all(_denies_as(said, statement, clause) for clause in clauses)


def _denies_as(said: bool, statement: str, clause: str) -> bool:
    denied = _denials(clause) % 2 == 1
    return denied != said and not _opposite(statement, clause)


def _denials(text: str) -> int:
    return len(_DENIAL.findall(_NO_DENIAL.sub(" ", text)))


def _about(words: Collection[frozenset[str]], source: str) -> list[str]:
    """The clauses of the source that hold most of the words; none if they hold few."""
    parts = [_ASIDE.sub(" ", source), *_ASIDE.findall(source)]
    clauses = [c for part in parts for c in _CLAUSE_END.split(part) if c.strip()]
    held = []
    for clause in clauses:
        terms = content_terms(clause)
        held.append(sum(2 * len(word & terms) > len(word) for word in words))
    most = max(held, default=0)
    if most < MIN_DENIED_WORDS - 1 or 2 * most < len(words):
        return []
    # A word less may be another form of it.
    least = max(most - 1, 1)
    return [clause for clause, count in zip(clauses, held, strict=True) if count >= least]


def _opposite(statement: str, source: str) -> bool:
    """Whether an odd number of opposites tell them apart, with no other limits on the one."""
    flips = sum(
        (said := bool(a.search(statement))) != bool(b.search(statement))
        and (said == bool(b.search(source)))
        and bool(a.search(source)) != bool(b.search(source))
        for a, b in _OPPOSITES
    )
    same_limits = set(_LIMITS.findall(statement.lower())) == set(_LIMITS.findall(source.lower()))
    return flips % 2 == 1 and same_limits
