"""Whether people of a summary have the part that its source gives them, and no news is invented.

Knows texts only. "Landlord Priya" is refused where the source has another landlord and calls Priya
the neighbour; "was fired" where nothing in the source speaks of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from chatbot.gate_persons import kin_names, kin_words
from chatbot.words import lines

_ROLES = (
    r"landlord|landlady|neighbou?r|boss|manager|supervisor|dentist|vet|doctor|teacher|tenant|flatmate"
    r"|roommate|colleague|coach|trainer|lawyer|accountant|plumber|contractor|nurse|babysitter|client"
)
_ROLE = re.compile(
    rf"\b(?i:({_ROLES}))(?:,| is| is called| named)? (?:(?:Mr|Mrs|Ms|Dr)\.? )?([A-Z][a-z]+)"
)
_ROLE_KO = re.compile(
    r"(?<![가-힣])(집주인|이웃|사장|상사|팀장|의사|수의사|선생님|동료|룸메이트|코치|변호사|세입자|거래처"
    r"|간호사)(?:인)? ([가-힣]{2,4}?)(?=[은는이가을를의와과]|\s|님|씨)"
)


def roles_held(text: str, source: str) -> Iterator[str]:
    """Roles that the source gives to somebody else while it calls this person something else."""
    known = set(_roles(source))
    for role, name in dict.fromkeys(_roles(text)):
        others = {n for r, n in known if r == role} - {name}
        own = {r for r, n in known if n == name}
        if others and own and role not in own:
            yield f"{role} {name}"
    lower = source.casefold()
    for kin, name in dict.fromkeys(kin_names(text)):
        is_other = any(n == name for _, n in known)
        if is_other and not any(word in lower for word in kin_words(kin)):
            yield f"{kin} {name}"


def _roles(text: str) -> Iterator[tuple[str, str]]:
    for role, name in _ROLE.findall(text):
        yield role.lower().replace("ou", "o").replace("lady", "lord"), name
    yield from _ROLE_KO.findall(text)


def grave_news(text: str, source: str) -> Iterator[str]:
    """Dismissals, deaths and the like of which the source has no word at all."""
    for claimed, support in _grave():
        found = claimed.search(text)
        if found and not support.search(source):
            yield found.group()


@cache
def _grave() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Two lines of the file are one: what a summary claims, and what in a source may mean it."""
    found = [re.compile(line, re.IGNORECASE) for line in lines("grave")]
    return tuple((found[n], found[n + 1]) for n in range(0, len(found), 2))
