"""Whether two sentences say yes and no of the same, or opposite things. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from retrieval.opposites import opposite
from retrieval.words import content_terms

MIN_DENIED_WORDS = 2
"""From so many words on, a statement must say yes or no as its source does."""

_DENIAL = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|neither|without|cannot)\b|n['’]t\b"
    r"|\b(?:prohibit|forb[ai]d|bann)\w*"
    r"|(?<![가-힣])(?:안|못)\s|않|없|아니|못[하했한합해할함]|금지|불가(?!피)"
    r"|(?<=지 )(?:마[십세시라]|말|맙)|(?<=지)(?:마[십세라]|맙)"
    r"|(?<![가-힣])금(?:한다|합니다|함|하며|하고|했)",
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
_HANGUL = re.compile("[가-힣]")
_ASIDE = re.compile(r", (?:which|who|whose|where)\b[^,;]*,", re.IGNORECASE)
_ANSWER = re.compile(r"^\s*(?:yes|no|네|예|아니요|아니오)[,.!]\s", re.IGNORECASE)
# What a sentence says without a condition is said by the rest of it.
_SIDE = re.compile(
    r"\bwithout\b(?: (?:an?|the|any|their|your|its|his|her)\b)?(?: [\w'’-]+){1,2}"
    r"|\bunless\b[^,;.]*"
    r"|\b(?:if|when|where|until|as long as)\b(?=[^,;.]{0,200}?(?:\bno|n['’]t\b))[^,;.]*"
    r"|\b(?:who|which|whose|that (?=(?:are|is|do|does|have|has|was|were)\b))"
    r"(?: ?[\w'’-]+){0,3}?(?: (?:not|no|never|cannot)\b|n['’]t\b)(?: [\w'’-]+){0,2}"
    r"|(?:[가-힣]{1,9} ?)?(?:없이|(?:없(?:으면|다면|는|어도|더라도|던)|없을 (?:때|경우|시)"
    r"|않(?:으면|는다면|은|는|아도|고|더라도|던)|않을 (?:때|경우|시)"
    r"|못(?:하면|한|하는|할|해도|하고)"
    r"|아니(?:면|라면|어도|더라도)|아닌)(?=[ ,])(?! (?:것|수|게|편|점|바|한다|합니다|됩|된)))",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:with|if|when|only|need\w*|requir\w*|must|once|unless|except|provided)\b"
    r"|으면|하면|되면|라면|해야|어야|아야|경우|필요|[가-힣]만(?= )|때",
    re.IGNORECASE,
)
# Words for a denial that are opposites elsewhere: whether they deny is not asked.
_REFUSAL = re.compile(
    r"\b(?:refus|declin|reject|den(?:y|ied)|barred|turned away|impossible|unable|illegal|stop)"
    r"|거부|거절|기각|반려|소멸|사라|제한|차단|막[혀히아]",
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
        # "Apply before 5 May": with one word, only opposites at a figure are asked for.
        limited = bool(words) and any(c.isdigit() for c in statement)
        return limited and _denials(statement) == _denials(source) and opposite(statement, source)
    if _contradicts_beside(statement, words, source):
        return True
    clauses = _about(words, source)
    if not clauses:
        return False
    if bool(_denials(statement)) == bool(_denials(source)):
        odd = _denials(statement) % 2
        return all(
            opposite(statement, clause) and odd == _denials(clause) % 2 for clause in clauses
        )
    said = bool(_denials(statement))
    return all(_denies_as(said, statement, clause) for clause in clauses)


def _contradicts_beside(statement: str, words: Collection[frozenset[str]], source: str) -> bool:
    """Whether only one of the two denies beside a condition that denies too ("may enter without a
    badge" against "may not enter without a badge")."""
    main, known = _SIDE.sub(" ", statement), _SIDE.sub(" ", source)
    if known == source or _REFUSAL.search(main) or _REFUSAL.search(known):
        return False
    if main == statement and not _drops_sides(statement, source):
        return False
    said = content_terms(main)
    words = [word for word in words if 2 * len(word & said) > len(word)]
    clauses = _about(words, known) if words else []
    # In Korean the last word is what is said of the others.
    last = words[-1] if words and _HANGUL.search(main) else frozenset()
    clauses = [c for c in clauses if last & content_terms(c)] or clauses
    # Of clauses that say yes and no, it is not told which one is meant.
    denies = {bool(_denials(part)) for part in _CLAUSE_END.split(main) if part.strip()}
    return bool(clauses) and all(
        denies == {not _denials(clause)} and not opposite(main, clause) for clause in clauses
    )


def _drops_sides(statement: str, source: str) -> bool:
    """Whether the statement has no condition, and no word of those of its source."""
    sides = content_terms(" ".join(match[0] for match in _SIDE.finditer(source)))
    return not (_CONDITION.search(statement) or sides & content_terms(statement))


def _denies_as(said: bool, statement: str, clause: str) -> bool:
    denied = _denials(clause) % 2 == 1
    return denied != said and not opposite(statement, clause)


def _denials(text: str) -> int:
    return len(_DENIAL.findall(_NO_DENIAL.sub(" ", text)))


def _held(word: frozenset[str], terms: Collection[str]) -> bool:
    """Whether a word is there, be it in another form: 이월된 for 이월되지."""
    shared = 2 * len(word.intersection(terms))
    return shared > len(word) or (shared == len(word) > 0 and bool(_HANGUL.search(min(word))))


def _about(words: Collection[frozenset[str]], source: str) -> list[str]:
    """The clauses of the source that hold most of the words; none if they hold few."""
    parts = [_ASIDE.sub(" ", source), *_ASIDE.findall(source)]
    clauses = [c for part in parts for c in _CLAUSE_END.split(part) if c.strip()]
    held = []
    for clause in clauses:
        terms = content_terms(clause)
        held.append(sum(_held(word, terms) for word in words))
    most = max(held, default=0)
    if most < MIN_DENIED_WORDS - 1 or 2 * most < len(words):
        return []
    # A word less may be another form of it.
    least = max(most - 1, 1)
    return [clause for clause, count in zip(clauses, held, strict=True) if count >= least]
