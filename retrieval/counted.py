"""What stands at a number beside its unit: the thing that is counted, and per how long. Pure."""

from __future__ import annotations

import re

from retrieval.words import content_terms

# One a line: its key, and what stands for it behind "per", "a" or a stroke.
_PERIODS = """
second seconds second sec s
minute minutes minute min
hour hours hour hr h
day days day d
week weeks week wk
month months month mo
year years year yr annum
"""
_PERIOD_OF = {word: row.split()[0] for row in _PERIODS.strip().splitlines() for word in row.split()}
_ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}
_ADVERBS |= {"yearly": "year", "annually": "year"}
_AFTER = re.compile(
    r"(?: ?/ ?|(?: [\w'’-]+){0,3}? (?:per|each|every) |(?: (?!and\b|or\b)[\w'’-]+)?? an? )"
    rf"(?P<period>{'|'.join(_PERIOD_OF)})\b"
    rf"|(?: [\w'’-]+)?? (?P<adverb>{'|'.join(_ADVERBS)})\b",
    re.IGNORECASE,
)
# One a line: its key, and patterns of what stands before a number in Korean.
_KOREAN = [
    (row.split("\t")[0], re.compile(rf"(?<![가-힣\d])(?:{row.split(chr(9))[1]}) ?$"))
    for row in """
second	초당|매초|1초에
minute	분당|매분|1분에|일 분에
hour	시간당|매시간|(?:1|한 ?)시간에
day	하루에?|매일|일일|일|(?<!월)(?<!월 )1일에?
week	주당|매주|주|(?:일|1)?주일에|(?:1|한 )주에|주간
month	월|매월|매달|월간|한 달에|1개월에
year	연|매년|연간|년간|(?:1|일 ?)년에|한 해에
""".strip().splitlines()
]
_COUNTERS = """번째 시간
명 개 번 달 살 주 가지 곳 대 권 잔 마리 장 쪽 사람 차례 회 층 호선 석 건 종 편
정 알 캡슐 과목 학점 단계 박 끼 그루 켤레 척 병 통 봉지 상자 세트 자리 학년 경기 골"""
_COUNTER = re.compile(rf" ?({'|'.join(sorted(_COUNTERS.split(), key=len, reverse=True))})")
_NOUN = re.compile(r"[ -]([^\W\d_가-힣]+)")
_SAME = {"회": "번", "사람": "명"}


def thing_at(text: str, end: int) -> str:
    """The word that a number ending at `end` counts; "" if it is none that says something."""
    if counter := _COUNTER.match(text, end):
        return _SAME.get(counter[1], counter[1])
    noun = _NOUN.match(text, end)
    return min(content_terms(noun[1]), default="") if noun else ""


def period_at(text: str, before: str, end: int) -> str:
    """Per how long a number is meant ("40 litres per minute", 분당 40리터): a key, or ""."""
    if match := _AFTER.match(text, end):
        adverb = match["adverb"]
        return _ADVERBS[adverb.lower()] if adverb else _PERIOD_OF[match["period"].lower()]
    return next((key for key, pattern in _KOREAN if pattern.search(before)), "")
