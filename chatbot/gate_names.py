"""Whether Korean names of a summary are those of its source, where no list of names has them.

Knows texts only. Names of pets, shops and places are told by what stands beside them; refused is a
name that the source lacks in the place of one that it has there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from chatbot.gate_persons import kin_names
from chatbot.proper_names import korean_names, korean_stem
from chatbot.words import word_set

_PET = r"강아지|고양이|반려견|반려묘|토끼|앵무새|햄스터"
_NAMED = r"카페|식당|서점|책방|빵집|펜션|밴드|가게|미용실|공방|레스토랑"
_KIN = r"아들|딸|남편|아내|동생|여동생|남동생|언니|누나|오빠|형|조카|친구|직원|동료"
_CALLED = re.compile(
    r"이름[은이]\s([가-힣]{2,9})(?![가-힣])|(?<![가-힣])([가-힣]{2,5}?)(?:이라는|라는)\s(?:이름|카페|가게|식당|강아지|고양이|회사|곳)"
)
_BESIDE_PET = re.compile(rf"(?:{_PET})(?:인)?\s([가-힣]{{2,8}})(?![가-힣])")
_BESIDE = re.compile(rf"(?:{_PET}|{_NAMED}|{_KIN})(?:인)?\s([가-힣]{{2,8}})(?![가-힣])")
_WENT = re.compile(
    r"(?<![가-힣])([가-힣]{2,6}?)(?:에|으로|로)\s(?:여행을\s|휴가를\s|출장을\s)?"
    r"(?:가[서고며는려요]|간다|갔|갈\s|떠나|떠난|출발|도착|이사|여행)"
)


def other_names(text: str, source: str) -> Iterator[str]:
    """ "강아지 보라" where the source has "강아지 보리", or "포르투에 간다" for 리스본."""
    named = _names(source)
    for name in dict.fromkeys(_stems(_BESIDE, text)):
        if name not in source and any(_is_near(name, o) and o not in text for o in named):
            yield name
    called = list(_stems(_CALLED, source))
    for name in _stems(_CALLED, text):
        if name not in source and called and not any(other in text for other in called):
            yield name
    known = [place for place in _stems(_WENT, source) if place not in text]
    for place in _stems(_WENT, text):
        if known and place not in source:
            yield place


@lru_cache(maxsize=8)
def _names(source: str) -> frozenset[str]:
    found = {*korean_names(source), *_stems(_CALLED, source), *_stems(_BESIDE_PET, source)}
    found |= {name for _, name in kin_names(source) if re.fullmatch("[가-힣]+", name)}
    return frozenset(name for name in found if len(name) > 1)


def _stems(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for found in pattern.finditer(text):
        word = next(group for group in found.groups() if group)
        stem = korean_stem(word)
        if len(stem) == 1 and len(word) > 2:
            stem = word[:-1]  # 보라는 is 보라 with a particle
        if len(stem) > 1 and stem not in word_set("beside_names"):
            yield stem


def _is_near(name: str, other: str) -> bool:
    """Whether two names differ in one syllable."""
    return len(name) == len(other) and sum(a != b for a, b in zip(name, other, strict=True)) == 1
