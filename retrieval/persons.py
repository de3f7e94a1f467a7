"""Korean names of persons in a statement that its source lacks. Pure; knows no dictionary."""

from __future__ import annotations

import re

_FAMILY = (
    "김이박최정강조윤장임한오서신권황안송전홍유류고문양손배백허남심노하곽성차주우구민진지엄원채천"
    "방공현함변염여추도석선설마길"
)
_GIVEN = (
    "민서준지현수진영희정우은경미숙철호석훈성재원상동규승환연아윤빈혜주선태형찬범식순옥애란림람솔"
    "건혁욱섭균창종병광하늘나라별이유예다도리슬율린솜결강산"
)
"""Syllables of which a word is taken for a name that no title follows."""
_DOUBLE = "(?:남궁|황보|제갈|선우|사공|독고)[가-힣]{1,2}"
_TITLES = (
    "팀장|과장|부장|차장|실장|국장|소장|원장|점장|반장|대리|주임|사원|이사|상무|전무|대표|사장|회장|총장"
    "|교수|강사|선생|박사|의원|장관|총리|대통령|감독|선수|코치|기자|변호사|판사|검사|의사|간호사|연구원"
    "|주무관|장군|시장|교장"
)
_PARTICLE = "(?:께서는?|에게|한테|이다|입니다|이며|이고|이었|였|[이가은는을를의와과도로만])"
_TITLED = re.compile(
    rf"(?<![가-힣])(?:(?P<name>{_DOUBLE}|[{_FAMILY}][가-힣]{{2}}) ?(?:(?:{_TITLES})님?|씨|님)"
    rf"|(?P<given>[가-힣]{{2,4}}) 씨){_PARTICLE}?(?:다|습니다)?(?![가-힣])"
)
_UNTITLED = re.compile(
    rf"(?<![가-힣])({_DOUBLE}|[{_FAMILY}][{_GIVEN}]{{2}})(?={_PARTICLE}(?:다|습니다)?(?![가-힣]))"
)
_OTHERS = """
이야기 정치인 주인공 서비스 위원회 한국어 이용자 이사회 조사단 기자단 장애인 정수기 한국인
조합원 공무원
외국인 유망주 신입생 지원자 담당자 책임자 관리자 구성원 지도자 전문가 우승자 정규직
하나도 이하나 이주민
원주민 유대인 유태인 조선인 이슬람 이른바 정상이 도서관 이상이
"""
NOT_PERSONS = frozenset(_OTHERS.split())
_NO_NAME = re.compile("[팀부과실처청회단사측당시군반급직형등도는을를의에로와던된한할될난]$")
"""Departments, places and words with a particle or ending stand before titles too."""
_PERHAPS = "은이가서인"
"""Endings of words and of names."""
_HANGUL = re.compile("[가-힣]")


def unknown_person(statement: str, source: str) -> bool:
    """Whether the statement names a person by name and title who stands nowhere in the source."""
    if not _HANGUL.search(source):
        return False
    return any(not _stands(name, source) for name in _titled(statement))


def another_person(statement: str, sentence: str, source: str) -> bool:
    """Whether it names somebody without a title who is not in the source, and not the person whom
    the sentence has there."""
    unknown = [name for name in _untitled(statement) if not _stands(name, source)]
    known = [*_titled(sentence), *_untitled(sentence)]
    return bool(unknown) and any(not _stands(name, statement) for name in known)


def _titled(text: str) -> list[str]:
    names = [match["name"] or match["given"] for match in _TITLED.finditer(text)]
    return [name for name in names if _may_be(name)]


def _untitled(text: str) -> list[str]:
    return [name for name in _UNTITLED.findall(text) if _may_be(name)]


def _may_be(name: str) -> bool:
    if name in NOT_PERSONS or _NO_NAME.search(name):
        return False
    return len(name) != 3 or name[2] not in _PERHAPS or name[1] in _GIVEN


def _stands(name: str, text: str) -> bool:
    """Whether a name is there, be it with a space in it or the given name alone."""
    if name in text or " ".join((name[0], name[1:])) in text:
        return True
    return len(name) > 2 and bool(re.search(f"(?<![가-힣])(?<![가-힣] ){name[1:]}", text))
