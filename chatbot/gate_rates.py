"""Whether figures keep what they are bound to: how often, per what, which half of the day, which
one in order, how many of a thing. Knows texts only.

Refused is only what the source says of the same thing with another figure, and nowhere so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from chatbot.words import word_groups

Bound = Iterator[tuple[str, str, str]]
"""What is counted, its figure, and the wording."""

_WORDS = {
    word: str(n)
    for n, group in enumerate(
        ("once one first 한 일 첫", "twice two second 두 이", "thrice three third 세 삼",
         "four fourth 네 사", "five fifth 다섯 오", "six sixth 여섯 육", "seven seventh 일곱 칠",
         "eight eighth 여덟 팔", "nine ninth 아홉 구", "ten tenth 열 십", "eleven eleventh 열한",
         "twelve twelfth 열두"), start=1)
    for word in group.split()
} | {"half": "½", "반": "½"}  # fmt: skip
_ENGLISH = "|".join(word for word in _WORDS if word.isascii())
_NATIVE = "|".join(sorted((w for w in _WORDS if not w.isascii()), key=len, reverse=True))
_PERIODS = {word.replace("_", " "): group[0] for group in word_groups("periods") for word in group}
_OFTEN = re.compile(
    rf"\b(?:(once|twice|thrice)|({_ENGLISH}|\d+)(?: times|x))\s(?:(?:a|per|each|every|in a)\s"
    r"(day|week|month|year)\b|(daily|weekly|monthly|yearly))"
    r"|(하루|매일|일주일|매주|주|한 달|매달|월|일 년|1년|매년|연)(?:에)?\s"
    rf"({_NATIVE}|\d+)\s?(?:번|회|차례)",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"(\d[\d,]*(?:\.\d+)?)\s?(?:[a-z]{3,}|€|\$|£)?\s?(?:(?:an?|per|each|every)\s|/\s?)"
    r"(hour|day|night|week|month|year|visit|person)\b"
    r"|(\d[\d,]*(?:\.\d+)?)\s(?:[a-z]{3,}\s)?(hourly|daily|weekly|monthly|yearly|annually)\b"
    r"|(?<![가-힣\d])(시급|일당|주급|월급|월세|연봉|시간당|하루|매달|매월|월|매년|연간|연|한 달"
    r"|일주일|1년|일 년)"
    r"(?:[은는이가에]|\s약)?(?:\s[가-힣]+[을를])?\s?"
    r"(\d[\d,]*(?:\.\d+)?\s?(?:[만천억]|(?=원|유로|달러|점|개|장|권|잔|편|곡|km)))",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\b(\d{1,2})(?:[:.](\d\d))?\s?(?:o['’]clock\s)?(?:([ap])\.?m\b|(?:in the (morning|afternoon"
    r"|evening)|at (night))\b)"
    r"|(오전|오후|아침|저녁|새벽|밤|낮|점심)\s?(\d{1,2})\s?시(?:\s?(\d{1,2})\s?분|\s?(반))?"
    r"|\b(\d\d):(\d\d)\b(?!\s?[ap]\.?m)",
    re.IGNORECASE,
)
_EARLY = frozenset(("a", "morning", "오전", "아침", "새벽"))
_NIGHT = frozenset(("night", "밤"))
_IN_ORDER = (
    "floor|storey|story|grade|chapter|level|round|quarter|semester|trimester|birthday|anniversary"
    "|edition|class|row|platform|gate|terminal|phase|attempt"
)
_ORDER = re.compile(
    rf"\b(?:({_ENGLISH}|\d{{1,2}}(?:st|nd|rd|th))[\s-]({_IN_ORDER})\b"
    r"|(floor|chapter|grade|level|gate|platform|terminal|phase|row)\s(\d{1,3})\b)"
    rf"|(?<![가-힣\d])({_NATIVE}|\d{{1,3}})\s?"
    r"(층|학년|호선|교시|등급|학기|분기|번\s?출구|동(?![가-힣]?[안물생네료작기시])|호(?![실텔수기])|번\s?버스)",
    re.IGNORECASE,
)
_DOSE = re.compile(
    rf"\b({_ENGLISH}|\d+)(?: (?:an?|of an?))? (tablet|pill|capsule|drop|teaspoon|tablespoon|puff"
    rf"|scoop)s?\b|(?<![가-힣])({_NATIVE}|\d+)\s?(알|정|포|방울|스푼|숟갈)(?=[을씩이은만로]|\s|[.,]|\Z)",
    re.IGNORECASE,
)


def bound_otherwise(text: str, source: str) -> Iterator[str]:
    """Figures that the source binds to the same thing with another value, and never with this."""
    for read in _READERS:
        stated = list(read(text))
        if not stated:
            continue
        known: dict[str, set[str]] = defaultdict(set)
        for thing, figure, _ in read(source):
            known[thing].add(figure)
        yield from (
            wording
            for thing, figure, wording in stated
            if known[thing] and figure not in known[thing]
        )


def _often(text: str) -> Bound:
    for found in _OFTEN.finditer(text):
        once, times, every, daily, span, native = found.groups()
        period = _PERIODS[(every or daily or span).lower()]
        yield period, _figure(once or times or native), found.group()


def _rates(text: str) -> Bound:
    """Turned round: of the figure is said per what it is."""
    for found in _RATE.finditer(text):
        figure, every, also, daily, span, native = found.groups()
        amount = re.sub(r"[,\s]", "", figure or also or native)
        yield amount, _PERIODS.get((every or daily or span).lower(), every), found.group()


def _clocks(text: str) -> Bound:
    """Turned round: of the hour on a dial is said in which half of the day it is."""
    for found in _CLOCK.finditer(text):
        hour, minute, letter, part, night, korean, hour_ko, minute_ko, half_past, *plain = (
            found.groups()
        )
        word = (letter or part or night or korean or "").lower()
        of_day = int(hour or hour_ko or plain[0])
        if of_day > 24:
            continue
        if not word or of_day > 12:
            late = of_day >= 12
        elif word in _NIGHT:
            late = 5 <= of_day < 12
        else:
            late = word not in _EARLY
        minutes = int(minute or minute_ko or plain[1] or 0) if not half_past else 30
        yield f"{of_day % 12}:{minutes:02}", str(late), found.group()


def _in_order(text: str) -> Bound:
    for found in _ORDER.finditer(text):
        which, thing, before, number, korean, noun = found.groups()
        kind = (thing or before or noun).lower()
        yield (
            re.sub(r"\s|storey|story", "", kind),
            _figure(which or number or korean),
            found.group(),
        )


def _doses(text: str) -> Bound:
    for found in _DOSE.finditer(text):
        figure, thing, native, noun = found.groups()
        yield (thing or noun).lower(), _figure(figure or native), found.group()


def _figure(word: str) -> str:
    return _WORDS.get(word.lower()) or re.sub(r"\D", "", word)


_READERS: tuple[Callable[[str], Bound], ...] = (_often, _rates, _clocks, _in_order, _doses)
