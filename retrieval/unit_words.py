"""Units behind and before numbers, in English and Korean. Pure; converts nothing."""

from __future__ import annotations

import re

# One unit a line: patterns of what may stand for it.
_UNITS = r"""
milligram mg milligrams? 밀리그램
gram g grams? 그램
kilogram kg kilos? kilograms? 킬로그램 킬로(?!미터)
tonne tons? tonnes? 톤
pound lbs? pounds? 파운드
ounce oz ounces? 온스
millimetre mm millimet(?:re|er)s? 밀리미터
centimetre cm centimet(?:re|er)s? 센티미터 센티
metre m met(?:re|er)s? 미터
kilometre km kilomet(?:re|er)s? 킬로미터 킬로(?!그램)
inch inch(?:es)? 인치
foot ft foot feet 피트
yard yd yards? 야드
mile mi miles? 마일
millilitre ml millilit(?:re|er)s? 밀리리터
litre l lit(?:re|er)s? 리터
gallon gal gallons? 갤런
second secs? seconds? 초(?!등|반|기)
minute mins? minutes? 분(?!의|기|야|류|할|량|자|석)
hour h hrs? hours? 시간
day days? 일(?!반|부|원|제|본)
week weeks? wks? 주일 주간 주(?!년|식|소|차|의|요|민|택)
month months? 개월 달(?!러)
year years? yrs? 년(?!대|생)
monthofyear 월
celsius °C deg(?:rees?)?[\s]celsius degrees?[\s]centigrade ℃
fahrenheit °F deg(?:rees?)?[\s]fahrenheit ℉
percent % percent per[\s]cent 퍼센트 프로(?!그|젝)
dollar dollars? USD US\$ 달러
euro euros? EUR € 유로
sterling pounds? GBP £ 파운드
yen yen JPY 엔(?!진|드|지)
won won KRW 원(?!칙|년|형|주|인|소)
kilobyte KB kilobytes? 킬로바이트
megabyte MB megabytes? 메가바이트
gigabyte GB gigabytes? 기가바이트
terabyte TB terabytes? 테라바이트
watt watts? 와트
kilowatt kW kilowatts? 킬로와트
"""
_BEFORE = {"$": "dollar", "€": "euro", "£": "sterling", "¥": "yen", "₩": "won"}
_BEFORE |= {"USD": "dollar", "EUR": "euro", "GBP": "sterling", "JPY": "yen", "KRW": "won"}
_BEFORE |= {"섭씨": "celsius", "화씨": "fahrenheit"}
# Between a number and its unit: working days, 영업일.
_WORDS_SKIPPED = "business working calendar consecutive full whole more 영업"
_SKIPPED = rf"[ -]?(?:(?:{'|'.join(_WORDS_SKIPPED.split())}) ?)?"


def _read(table: str) -> list[tuple[str, re.Pattern[str]]]:
    rows = []
    for line in table.strip().splitlines():
        name, *forms = line.split(" ")
        ended = [form + r"(?![A-Za-z])" if form[0].isascii() else form for form in forms]
        rows.append((name, re.compile(_SKIPPED + f"(?:{'|'.join(ended)})", re.IGNORECASE)))
    return rows


_AFTER = _read(_UNITS)
_FIRST = frozenset(form[0].lower() for form in f"{_UNITS} {_WORDS_SKIPPED}".split())
"""What the word behind a number begins with if it may be a unit; most do not."""
UNIT_MARK = "unit:"
"""Before the name of a unit among terms, where it stands for all its forms."""


def unit_after(text: str, end: int) -> tuple[frozenset[str], int]:
    """What the unit may be that follows a number ending at `end`, and where it ends.

    Empty if none is known.
    """
    if text[end : end + 2].lstrip(" -")[:1].lower() not in _FIRST:
        return frozenset(), end
    found = [(match.end(), name) for name, p in _AFTER if (match := p.match(text, end))]
    longest = max((length for length, _ in found), default=end)
    return frozenset(name for length, name in found if length == longest), longest


def unit_before(before: str) -> frozenset[str]:
    """The currency or scale of temperature whose sign stands just before a number."""
    text = before.rstrip()
    return frozenset(name for sign, name in _BEFORE.items() if text.endswith(sign))
