"""Whether a line only supposes, tells of the past or denies what it says of a value. Pure.

Knows single lines of text: no earlier line and no kinds of values. "If my rent were 950 euros",
"작년 월세는 80만 원이었어요", "he says it's the 21st, but he is wrong": none says what holds.
"""

from __future__ import annotations

import re
from typing import Literal

from chatbot.words import patterns

Unreal = Literal["", "supposed", "past", "denied"]

_SUPPOSED, _WOULD, _THOUGHT = patterns("supposed"), patterns("would"), patterns("thought")
_CONDITION, _NO_CONDITION = patterns("condition"), patterns("no_condition")
_PAST_TIME, _CHANGE_KO = patterns("past_time"), patterns("change_ko")
_CLAIM, _OWN_ERROR = patterns("claim"), patterns("own_error")
_DENIED, _DENIED_KO = patterns("claim_denied"), patterns("claim_denied_ko")
_PART = re.compile(
    r"[;:.!]\s|\s[–—-]\s|,?\s(?:but|although|though|however|whereas)\s|(?<=지만)[\s,]|(?<=는데)[\s,]|(?<=[인한은]데)[\s,]|\s(?:하지만|그런데|근데|그래서)\s"
)
"""Between what is said of two things or times; a condition reaches no further."""
_CLAUSE = re.compile(
    r",\s(?=[a-z가-힣])|\s(?:and|so) (?=it|now|today|this|that|the|we|I|my|our)"
    r"|(?<![려라다자냐]고)(?<!에서)(?<=[고며서])[\s,]|(?<=니까)[\s,]"
)
_REPORTED = re.compile(r"\b(?:said|says?|told|confirmed|announced|informed|wrote|promised)\b", re.I)
_MAYBE = re.compile(r"\b(?:would|could|might|['’]d)\b", re.IGNORECASE)
_USED_TO = re.compile(r"(?<!['’]m )(?<!am )(?<!are )(?<!get )(?<!got )\bused to \w", re.IGNORECASE)
_TENSE = re.compile(
    r"\b(?:(?P<past>(?:was|were|had|cost|paid|lived|worked|weighed|earned)(?!\s(?:\w+ly\s)?(?:been\s)?"
    r"(?!called\b|named\b)(?:\w+ed|cut|put|set|brought|born|taken|given)\b))"
    r"|is|are|costs|has|have|will|now|(?:was|were|had|moved|changed|became|turned)\b)|['’](?:s|re|ll)\b",
    re.IGNORECASE,
)
_NOT_BEFORE = re.compile(
    r"(?:\bnot|n['’]t|\bno longer)\s(?:(?!until|till|before|after|only|just|more|less|later|earlier"
    r"|that|so|very|exactly|but|and|because|forget|worry|miss|mind|know|for)[\w'’]+\s){0,3}\Z"
    r"|\b(?:rather than|instead of)\s(?:(?:the|on|at|in|for|an?|my|our)\s){0,2}\Z",
    re.IGNORECASE,
)
_NOT_BEHIND = re.compile(
    r"[가-힣]{0,2}\s?(?:아니|아녜|아닙|아냐|말고)"
    r"|(?:(?!이상|넘|밖에|까지|이하|전에)[^,.]){0,12}(?:지 (?:않|못|말)|\s(?:안|못) [가-힣])"
)
_QUOTED = re.compile(
    r"[가-힣]{0,4}?(?:이?라|다|자|냐)(?:고|는|던|며|면서|니|네|더라)"
    r"|[^,.!?]{0,24}?[가-힣][라다자](?:고|는 (?:말|소문|얘기|이야기|건|게|것))[\s은이도]"
)


def unreal(line: str, at: int, text: str) -> Unreal:
    """What is wrong with taking the value `text` at a place of the line for what holds now.

    Without a place (-1) only whether the line as a whole is supposed.
    """
    if at < 0:
        return "supposed" if _conditions(line) or _SUPPOSED.search(line) else ""
    start, end = _around(_PART, line, at)
    part, at_part = line[start:end], at - start
    first, last = _around(_CLAUSE, part, at_part)
    clause, at_clause = part[first:last], at_part - first
    if _is_supposed(part, first, last) or _is_thought(clause, at_clause):
        return "supposed"
    if _is_denied(line, at, text) or _NOT_BEFORE.search(clause, 0, at_clause):
        return "denied"
    if _NOT_BEHIND.match(clause, at_clause + len(text)):
        return "denied"
    return "past" if _is_past(part[:last], clause, at_clause, text) else ""


def place_of(line: str, text: str) -> int:
    """Where a value stands in a line, not as a part of a longer number or word; -1 if nowhere."""
    found = re.search(rf"(?<!\w){re.escape(text)}(?![\dA-Za-z])", line) if text else None
    return found.start() if found else line.find(text) if text else -1


def _around(split: re.Pattern[str], line: str, at: int) -> tuple[int, int]:
    start = max((found.end() for found in split.finditer(line) if found.end() <= at), default=0)
    end = min(
        (found.start() for found in split.finditer(line) if found.start() > at), default=len(line)
    )
    return start, end


def _conditions(text: str) -> list[int]:
    plain = _NO_CONDITION.sub(lambda found: " " * len(found.group()), text)
    return [found.start() for found in _CONDITION.finditer(plain)]


def _is_supposed(part: str, first: int, last: int) -> bool:
    """By words of its clause, or by a condition in it, before it, or in the one that follows."""
    clause = part[first:last]
    if _SUPPOSED.search(clause) or (_WOULD.search(clause) and not _REPORTED.search(part[:last])):
        return True
    if any(at < last for at in _conditions(part)):
        return True
    behind = part[last:]
    return (
        bool(re.match(r",?\s*(?:if|unless)\b", behind))
        and bool(_conditions(behind))
        and not _MAYBE.search(behind)
    )


def _is_thought(clause: str, at: int) -> bool:
    return bool(_THOUGHT.search(clause, 0, at))


def _is_denied(line: str, at: int, text: str) -> bool:
    """Whether somebody says or wants it, and the line says that it is not so."""
    behind = _OWN_ERROR.sub(" ", line[at + len(text) :])
    if _CLAIM.search(line, 0, at) and _DENIED.search(behind):
        return True
    quoted = _QUOTED.match(behind)
    return bool(quoted and _DENIED_KO.search(behind, quoted.end()))


def _is_past(front: str, clause: str, at: int, text: str) -> bool:
    """By the last verb before the value; in Korean by the end of its clause."""
    if re.search("[가-힣]", clause):
        tail = clause[at + len(text) :]
        return (
            bool(_PAST_TIME.search(front)) and _ends_in_past(tail) and not _CHANGE_KO.search(tail)
        )
    tenses = list(_TENSE.finditer(clause, 0, at))
    used_to = [found.end() for found in _USED_TO.finditer(clause, 0, at)]
    if used_to and (not tenses or tenses[-1].start() < used_to[-1]):
        return True
    told = bool(_PAST_TIME.search(front)) and bool(tenses)
    return told and tenses[-1]["past"] is not None


def _ends_in_past(tail: str) -> bool:
    """Whether it has a verb with the final ㅆ of the past tense, or 던."""
    past = [c for c in tail if "가" <= c <= "힣" and (ord(c) - ord("가")) % 28 == 20]
    return any(c not in "있겠" for c in past) or "던" in tail
