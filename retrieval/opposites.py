"""A closed list of opposite words, and whether two sentences differ by an odd number. Pure."""

from __future__ import annotations

import re

# A number or a day behind a word that is a limit only there.
_POINT = (
    r"(?= (?:the )?(?:(?:age|end|start|beginning) of )?(?:the )?(?:[€$£]?\d|noon|midnight"
    r"|(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty)\b"
    r"|(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*\b"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day))"
)
_AMOUNT = r"(?<=\d)[^\s\d]{0,3} ?"
_PARTS = "(?:hand|side|door|lane|arm|leg|eye|ear|button|key|switch|lever|wing|valve|corner|edge)"
_TURN = "(?:on the|to the|turn|keep|bear|go|then|and)"
_LEFT = rf"\bleft[- ]{_PARTS}\b|\b{_TURN} left\b"
_RIGHT = rf"\bright[- ]{_PARTS}\b|\b{_TURN} right\b"
_NAMED = {"point": _POINT, "amount": _AMOUNT, "left": _LEFT, "right": _RIGHT}
# One pair a line: patterns of the one and the other, with a tab between.
_PAIRS = r"""
(?:switch|turn|power)\w* (?:\w+ )?on\b	(?:switch|turn|power)\w* (?:\w+ )?off\b
\bopen\b	\b(?:closed|shut)\b
\binclud	\bexclud
\b(?:increas|r[io]se|rising|gr[eo]w)	\b(?:decreas|f[ae]ll|drop|shr[aiu]nk)
\b(?:approv|accept|agreed to\b)	\b(?:reject|refus|declin)
\benabl	\bdisabl
\bat least\b|\bminimum\b	\bat most\b|\bmaximum\b
\b(?:mandatory|compulsory|obligatory)\b	\b(?:optional|voluntary)\b
\b(?:before|prior to|within)\b{point}	\bafter\b{point}
\b(?:under|below|younger than)\b{point}	(?<!not )\b(?:over|above|older than)\b{point}
\bnorth(?:ern)?\b	\bsouth(?:ern)?\b
\beast(?:ern)?\b	\bwest(?:ern)?\b
{left}	{right}
\b(?:begin|begins|began|starts?|started)\b	\b(?:ends?|ended|expires?|expired|finish(?:es|ed)?)\b
\bpass(?:es|ed)?\b	\bfail(?:s|ed)?\b
켜[고야다두서며면져집진]|켠	끄[고는다며면지]|꺼[야두서진져집]|끈다
열려|열린 채	닫[아혀힌히]
(?<![불미])포함	제외|별도(?!의|로)|[불미]포함
증가|늘[었어린]|올랐|상승|인상	감소|줄[었어인]|내렸|하락|인하
승인|수락|찬성	반려(?![동견묘])|거부|거절|기각|반대
최대	최소
의무|필수	선택 사항|자율
(?<!불)합격	불합격|탈락
유료	무료
왼쪽|왼편|좌측	오른쪽|오른편|우측
(?:동|東)쪽|동문(?=[ 은이을에])	서쪽|서문(?=[ 은이을에])
남쪽|남문(?=[ 은이을에])	북쪽|북문(?=[ 은이을에])
시작|개시	끝나|끝난|끝났|끝납|종료|마감|만료
{amount}(?:이상|초과)	{amount}(?:이하|미만)
이전|{amount}전(?=[에까 ])|이내	이후|{amount}후(?=[에부 ])|지나|지난|경과
"""


def _read(table: str) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    for name, text in _NAMED.items():
        table = table.replace(f"{{{name}}}", text)
    rows = [line.split("\t") for line in table.strip().splitlines()]
    return [(re.compile(a, re.IGNORECASE), re.compile(b, re.IGNORECASE)) for a, b in rows]


_OPPOSITES = _read(_PAIRS)
_LIMITS = re.compile(
    r"\b(?:until|from|except|unless|only|if)\b|까지|부터|경우|외에"
    r"|(?P<side>\b(?:after|before|within)\b|이후|이전|이내|지나면|지난|경과)",
    re.IGNORECASE,
)


def opposite(statement: str, source: str) -> bool:
    """Whether an odd number of opposites tell them apart, with no other limits on the one."""
    flips = sum(
        (said := bool(a.search(statement))) != bool(b.search(statement))
        and (said == bool(b.search(source)))
        and bool(a.search(source)) != bool(b.search(source))
        for a, b in _OPPOSITES
    )
    return flips % 2 == 1 and _limits(statement) == _limits(source)


def _limits(text: str) -> set[str]:
    """The limits of a text; which side of a day is meant is asked of the opposites."""
    return {"side" if match["side"] else match[0] for match in _LIMITS.finditer(text.lower())}
