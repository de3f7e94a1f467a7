"""Whether a summary says things as strongly as its source: how many, and whether it was done.

Knows texts only. Compared are clauses about the same: "all singers" where the source has "half of
the singers", "booked" where it only thinks of booking, and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from chatbot.gate_binding import said
from chatbot.line_values import name_keys
from chatbot.subjects import among, subject

_CLAUSE = re.compile(
    r"[;:,]\s|\s[–—-]\s|\s(?:and|but|while|whereas|so)\s|(?<=[고며])\s(?!싶|있|계|나)"
    r"|(?<=지만)\s|(?<=는데)\s"
)
_AMOUNTS = {
    "all": r"\b(?:all|every|everyone|everybody|entire|both)\b|모두|모든|전부|전원",
    "none": r"\b(?:none|no one|nobody)\b|아무도|하나도|한 명도",
    "most": r"\b(?:most|majority)\b|대부분|대다수",
    "half": r"\bhalf\b|절반",
    "some": r"\b(?:some|a few|several|part) (?!day|time|how)|일부|몇몇|조금",
    "part": r"\b(?:one|two|three|four|five|\d+) of (?:the|our|my|his|her|their|all)\b"
    r"|(?:둘|셋|[가-힣\d]\s?[개명장]) 중",
}
_AMOUNT = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _AMOUNTS.items()}
_SHARE = 0.5
"""Of what a clause is about, the source must say so much in one of its own."""
_WEAKER = {"half": {"some", "part"}, "most": {"some"}, "all": set(), "part": {"some", "half"}}
"""What may stand for an amount: less is said, nothing else."""

_DEEDS = (
    r"book(?P<done>ed)?|reserv(?:e|ing|(?P<done2>ed))|booking",
    r"buy(?:ing)?|(?P<done>bought)|purchas(?:e|ing|(?P<done2>ed))",
    r"order(?:ing)?|(?P<done>ordered)",
    r"sign(?:ing)?|(?P<done>signed)",
    r"pay(?:ing)?|(?P<done>paid)",
    r"lend(?:ing)?|(?P<done>lent)",
    r"hir(?:e|ing)|(?P<done>hired)",
    r"sell(?:ing)?|(?P<done>sold)",
    r"cancel(?:l?ing)?|(?P<done>cancell?ed)",
    r"decid(?:e|ing)|(?P<done>decided)",
    r"apply(?:ing)? (?:for|to)|(?P<done>applied) (?:for|to)",
    r"accept(?:ing)?|(?P<done>accepted)",
    r"adopt(?:ing)?|(?P<done>adopted)",
    r"submit(?:ting)?|(?P<done>submitted)",
    r"enroll?(?:ing)?|(?P<done>enrolled)",
)
_ENGLISH = tuple(re.compile(rf"\b(?:{deed})\b", re.IGNORECASE) for deed in _DEEDS)
_OPEN = re.compile(
    r"\b(?:might|may(?! \d)|could|would|should|want\w*|wish\w*|hop(?:e|es|ing)|plan\w*|consider\w*"
    r"|think\w*|thought|maybe|perhaps|possibly|whether|if|likely|intend\w*|going to|will|not|never"
    r"|yet|unsure|undecided|unless|weigh\w*|like to|to be|ready to|try\w*|before|once|when|asked?"
    r"|need\w*|must|recommend\w*|suggest\w*|advis\w*|can)\b|n['’]t\b|['’](?:d|ll)\b|\?",
    re.IGNORECASE,
)
_OPEN_BEHIND = re.compile(r"\byet\b|\bif\b|\?")
_UNSURE = re.compile(
    r"\b(?:consider(?:s|ing|ed)?|thinking (?:about|of)|undecided|unsure|weigh(?:s|ing)|might"
    r"|whether to)\b|고민|고려|할지|할까|생각 중",
    re.IGNORECASE,
)
_SETTLED = re.compile(
    r"\b(?:done|went ahead|did (?:it|that|so)|confirmed|all set|settled|deal|it['’]s official)\b"
    r"|그렇게 (?:했|하기로)|확정",
    re.IGNORECASE,
)
_KOREAN = tuple(
    re.compile(pattern)
    for pattern in (
        r"예약", r"주문", r"계약서|계약|서명", r"신청",
        r"(?<![가-힣])(?:샀|살까|살지|사려|사고 싶|살 )|구입|구매",
        r"(?<![가-힣])(?:팔았|팔까|팔지|팔려|팔고 싶|팔 )|판매", r"취소", r"등록", r"결제", r"입양",
    )
)  # fmt: skip
_DONE_KO = re.compile(
    r"^[가-힣]{0,3}(?:을|를|은|는|도|이|가)?\s?(?:이미\s|어제\s)?(?:[했됐]|하였|되었|마[쳤치]|끝[냈났내]|완료|하셨|함)"
    r"|샀|팔았"
)
_OPEN_KO = re.compile(
    r"까|려고|려\s|싶|고민|고려|생각|예정|계획|지도|할 거|할게|않|못|안 |말까|원[하한해]|희망|검토"
    r"|해야|면\s|예상|아직"
)


def of_other_amount(text: str, source: str) -> Iterator[str]:
    """ "All of the singers" where the source says it of half of them, and nowhere of all."""
    for clause in _clauses(text):
        mine = _amounts(clause)
        if len(mine) != 1:
            continue
        terms = _about(clause)
        theirs = _amounts_of(terms, source)
        if theirs and not mine & theirs and not any(mine <= _WEAKER.get(t, set()) for t in theirs):
            yield f"{next(iter(mine))} instead of {' or '.join(sorted(theirs))}"


def of_other_state(text: str, source: str) -> Iterator[str]:
    """ "Booked" where the source only thinks of booking it, or the other way round."""
    may_be_done = bool(_SETTLED.search(source))
    for clause in _clauses(text):
        for number, (deed, state) in _deeds(clause).items():
            held = _states(number, _about(clause), source)
            if state == "done" and not may_be_done and held == {"open"}:
                yield f"done: {deed}"
            if state == "unsure" and held == {"done"}:
                yield f"not yet done: {deed}"


def _amounts(clause: str) -> set[str]:
    return {name for name, pattern in _AMOUNT.items() if pattern.search(clause)}


def _amounts_of(terms: frozenset[str], source: str) -> set[str]:
    """The amounts in those clauses of the source that have most in common with these terms."""
    scored = [(_common(terms, about), clause) for clause, about in _known(source)]
    most = max((score for score, _ in scored), default=0)
    if len(terms) < 2 or most < max(1, _SHARE * len(terms)):
        return set()
    best = [_amounts(clause) for score, clause in scored if score == most]
    return set().union(*best) if all(best) else set()


def _states(number: int, terms: frozenset[str], source: str) -> set[str]:
    """Whether the source says of a deed about the same things that it is done, open or both."""
    found = set()
    before: frozenset[str] = frozenset()
    for clause, own in _known(source):
        at, about, before = _deeds(clause).get(number), own | before, own
        if at is None:
            continue
        # "Booked!" says it of whatever was spoken of.
        if _common(terms, about) > 0 or (at[1] == "done" and len(own) < 2):
            found.add("open" if at[1] in ("open", "unsure") else "done")
    return found


def _deeds(clause: str) -> dict[int, tuple[str, str]]:
    """The deeds of a clause: number of the verb -> its wording, and "done", "open" or "unsure"."""
    found: dict[int, tuple[str, str]] = {}
    for number, pattern in enumerate(_ENGLISH):
        if match := pattern.search(clause):
            done = any(value for value in match.groupdict().values())
            before, behind = clause[: match.start()], clause[match.end() :]
            is_open = bool(_OPEN.search(before) or _OPEN_BEHIND.search(behind)) or not done
            state = "unsure" if _UNSURE.search(before) else "open" if is_open else "done"
            found[number] = (match.group(), state)
    for number, pattern in enumerate(_KOREAN, start=len(_ENGLISH)):
        for match in pattern.finditer(clause):  # of "계약서에 서명했다" the last one
            rest, whole = clause[match.end() :], clause[match.start() :]
            done = bool(_DONE_KO.search(rest) or _DONE_KO.search(match.group()))
            is_open = bool(_OPEN_KO.search(whole)) or not done
            state = "unsure" if _UNSURE.search(whole) else "open" if is_open else "done"
            found[number] = (match.group(), state)
    return found


def _common(terms: frozenset[str], others: frozenset[str]) -> int:
    return sum(among(term, others) for term in terms)


@lru_cache(maxsize=8)
def _clauses(text: str) -> tuple[str, ...]:
    parts = (part.strip() for sentence in said(text) for part in _CLAUSE.split(sentence))
    return tuple(part for part in parts if part)


@lru_cache(maxsize=8)
def _known(source: str) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((clause, _about(clause)) for clause in _clauses(source))


def _about(clause: str) -> frozenset[str]:
    """What a clause is about, without the words of amounts and deeds."""
    plain = clause
    for pattern in (*_AMOUNT.values(), *_ENGLISH, *_KOREAN):
        plain = pattern.sub(" ", plain)
    return subject(plain) | name_keys(plain)
