"""Numbers in words and with scales, such as "three million" and 300만. Pure."""

from __future__ import annotations

import re
from decimal import Decimal

from retrieval.words import content_terms

_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_VALUES = {word: n for n, word in enumerate(_UNITS.split())}
_VALUES |= {word: 10 * n for n, word in enumerate(_TENS.split(), start=2)}
SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9}
SMALL = frozenset(str(n) for n in range(11))
_NATIVE = "한 두 세 네 다섯 여섯 일곱 여덟 아홉 열"
_KOREAN = {word: n for n, word in enumerate(_NATIVE.split(), start=1)}
_KOREAN_SCALES = {"십": 10, "백": 10**2, "천": 10**3, "만": 10**4, "억": 10**8, "조": 10**12}
_COUNTERS = "시간|명|개|번|달|살|주|가지|곳|대|권|잔|마리|장|쪽|사람|차례"
_SINO_DIGITS = {word: n for n, word in enumerate("일이삼사오육칠팔구", start=1)}
_SINO_UNITS = "원|명|개월|개|일|년|달러|유로|권|장|분|시간|퍼센트|킬로|미터|그램|리터"
SINO_AMOUNT = (
    r"(?<![가-힣\d])(?=[일이삼사오육칠팔구]?[십백천만억])[일이삼사오육칠팔구십백천만억]{2,}"
    rf"(?= ?(?:{_SINO_UNITS})(?:(?![가-힣])|이[다며고에]|입니|[이은을의에]|까지|부터|간|씩|동안))"
)
"""A pattern: 백이십만 before 원."""
_ANY = "|".join(sorted([*_VALUES, *SCALES], key=len, reverse=True))
_ALONE = "|".join(sorted(set(_VALUES) - {"one", "zero"}, key=len, reverse=True))
NUMBER_PHRASE = (
    rf"\b(?:(?:one|a) (?:{'|'.join(SCALES)})|(?:{_ALONE}))(?:(?:[ -]| and )(?:{_ANY}))*\b"
    rf"|(?<![가-힣])(?:{'|'.join(_KOREAN)})(?= ?(?:{_COUNTERS}))"
    rf"|{SINO_AMOUNT}"
)
"""A pattern. One alone is a pronoun more often than a number."""
NUMBER_TERMS = frozenset(
    form for word in (*_VALUES, *SCALES) if word != "one" for form in content_terms(word)
)
MAX_FIGURES = 15
"""Of longer numbers no multiple is made."""
_PART = re.compile(r"(\d+(?:[.,]\d+)*) ?([십백천만억조]*)")


def phrase_value(phrase: str) -> str:
    """The value of what NUMBER_PHRASE matches, in figures."""
    if phrase in _KOREAN:
        return str(_KOREAN[phrase])
    if "가" <= phrase[0] <= "힣":
        return str(_sino_value(phrase))
    total = current = 0
    for word in re.split("[ -]+", phrase.lower()):
        if word == "hundred":
            current = max(current, 1) * 100
        elif word in SCALES:
            total, current = total + max(current, 1) * SCALES[word], 0
        else:
            current += 1 if word == "a" else _VALUES.get(word, 0)
    return str(total + current)


def _sino_value(amount: str) -> int:
    total = group = digit = 0
    for sign in amount:
        scale = _KOREAN_SCALES.get(sign, 0)
        if not scale:
            digit = _SINO_DIGITS[sign]
        elif scale < 10**4:
            group, digit = group + max(digit, 1) * scale, 0
        else:
            total, group, digit = total + max(group + digit, 1) * scale, 0, 0
    return total + group + digit


def scaled(figure: str, scale: int) -> str:
    """A plain number times a whole one; the number itself if it is none or very long."""
    if len(figure) > MAX_FIGURES or figure.count(".") > 1:
        return figure
    product = Decimal(figure) * scale
    return str(int(product)) if product == int(product) else f"{product:f}"


def korean_amount(text: str) -> str:
    """The value of an amount such as 1억 2천만. None of its figures alone stands for it."""
    total = Decimal(0)
    for figure, units in _PART.findall(text):
        figure = figure.replace(",", "")
        if len(figure) > MAX_FIGURES or figure.count(".") > 1:
            continue
        scale = 1
        for unit in units[:4]:
            scale *= _KOREAN_SCALES[unit]
        total += Decimal(figure) * scale
    return str(int(total)) if total == int(total) else f"{total:f}"


def other_share(figure: str, *, percent: bool) -> str:
    """A share in its other form: 0.5 for 50 percent, 50 for a bare 0.5; "" if it has none."""
    if len(figure) > MAX_FIGURES or figure.count(".") > 1:
        return ""
    if not percent and not figure.startswith("0."):
        return ""
    share = Decimal(figure) / 100 if percent else Decimal(figure) * 100
    text = f"{share:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
