"""Whether a line says the opposite of an earlier one, as "turns out I'm not allergic". Pure.

Knows lines of text only. What it cannot tell for sure it leaves: then both lines stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from chatbot.line_values import keys, name_keys
from chatbot.subjects import among, subject

_PREAMBLE = re.compile(
    r"^.*?\b(?:turns out|turned out|says?|said|told (?:me|us)|found out|learn(?:ed|t)"
    r"|confirmed|showed|shows)(?: that)?,?\s+|^\W*(?:actually|no|sorry|wait|in fact)\W+"
    r"|^.*?[가-힣]\s?(?:보니까?|더니|는데)[은는]?,?\s+|^\W*(?:사실은?|아니)[, ]\s*",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|never|no|cannot)\b|n['’]t\b|아니|아닌|아녜|없|(?:^|\s)(?:안|못) |지 ?(?:않|못)",
    re.IGNORECASE,
)
_IN_PART = re.compile(
    r"\bnot (?:only|just|sure|certain|yet|necessarily|all|every\w*|always|many|much|really|quite"
    r"|even|so|too|as|that)\b|\b(?:yet|if|unless|whether|when|except|but|only|why|than)\b|[?？]"
    r"|[가-힣](?:으?면|지만|거나|밖에|뿐|까지는)\s|모르|아직|[가-힣]만\s",
    re.IGNORECASE,
)
"""Denies only a part, or under a condition."""
_SEVERAL = re.compile(r"\b(?:and|or)\b|,|[가-힣](?:와|과|랑|하고)\s", re.IGNORECASE)
_MOST_LIKELY = re.compile(
    r"\b(?:turns out|turned out|after all|actually|any ?more|no longer|in fact)\b|보니|더니|사실"
    r"|이제|더 이상",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r", not\b|\binstead\b|\brather\b|아니라|아니고|말고|대신|않고", re.IGNORECASE
)
"""Denies one thing in order to say another."""
_LEAST_SHARE = 0.6
"""Of the words of the earlier line, where the new one says that it takes something back."""
_PLAIN_VERBS = re.compile(
    r"\b(have|has|had|lik|want|need|know|think|mean|mak|go|chang)(?:e?s|ing|e)?\b", re.IGNORECASE
)
"""Words of mere form for what a line is about, but "don't like" is not "don't have"."""
_KOREAN_BE = re.compile(r"(?:있|없|아니|아닌|아녜)")
_KOREAN_NOUN = re.compile(
    r"([가-힣]+?)(?:이에요|예요|입니다|이야|이래요|이었어요|였어요|해요|합니다|한대요|하대요|하지|해|래요|야)$"
)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a line says of what, without whether it affirms or denies it."""

    about: frozenset[str]
    verbs: frozenset[str]
    person: str
    denies: bool


def denies_something_else(line: str, old: str) -> bool:
    """Whether only one of the two denies, and not what the other one says."""
    mine, theirs = _said(line), _said(old)
    if mine is None or theirs is None or _CONTRAST.search(line):
        return False
    return mine.denies and not theirs.denies and not says_opposite(line, old)


def says_opposite(line: str, old: str) -> bool:
    """Whether `line` affirms what `old` denies or denies what it affirms, of the same person."""
    mine, theirs = _said(line), _said(old)
    if mine is None or theirs is None or mine.denies == theirs.denies:
        return False
    if mine.verbs != theirs.verbs or not _same_person(mine.person, theirs.person):
        return False
    if not keys(_core(line)) <= keys(old) or not all(among(w, theirs.about) for w in mine.about):
        return False
    shared = sum(among(word, mine.about) for word in theirs.about)
    if shared == len(theirs.about):
        return True
    likely = bool(_MOST_LIKELY.search(line)) and not _SEVERAL.search(old)
    return likely and shared >= _LEAST_SHARE * len(theirs.about)


@lru_cache(maxsize=16_384)
def _said(line: str) -> _Said | None:
    """None where it is about nothing, or denied only in part."""
    core = _core(line)
    if _IN_PART.search(core):
        return None
    denies = bool(_DENIES.search(core))
    if re.search("[가-힣]", core):
        about, verbs = _korean(core)
    else:
        plain = re.sub(r"n['’]t\b", " ", core)
        about = subject(plain)
        verbs = frozenset(
            {"has": "have", "had": "have"}.get(word.lower(), word.lower())
            for word in _PLAIN_VERBS.findall(plain)
        )
    about |= name_keys(core)
    return _Said(about, verbs, _person(core), denies) if about else None


def _core(line: str) -> str:
    return _PREAMBLE.sub("", line.strip(), count=1) or line


def _person(core: str) -> str:
    """Of whom it is said, as far as the first word tells; Korean leaves it out as often as not."""
    first = re.match(r"\W*(\w+)", core)
    word = first.group(1).lower() if first else ""
    if re.search("[가-힣]", core):
        return "any"
    if word in ("i", "we"):
        return "speaker"
    return "other" if word in ("he", "she", "they", "it", "there", "this", "that") else "named"


def _same_person(mine: str, theirs: str) -> bool:
    return mine == theirs or (mine == "other" and theirs == "named")


def _korean(core: str) -> tuple[frozenset[str], frozenset[str]]:
    """What it is about, and the first consonant of its verb: 와요 and 안 온대요 have the same."""
    text = re.sub(r"지 ?(?:않|못)[가-힣]*\W*$", "지", core)
    words = [re.sub(r"\W+$", "", word) for word in text.split() if word not in ("안", "못")]
    if not words:
        return frozenset(), frozenset()
    last, verb = words.pop(), ""
    if noun := _KOREAN_NOUN.match(last):
        words.append(noun.group(1))
    elif not _KOREAN_BE.match(last):
        verb = str((ord(last[0]) - ord("가")) // 588) if last and "가" <= last[0] <= "힣" else last
    return subject(" ".join(words)), frozenset({verb})
