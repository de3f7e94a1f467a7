"""The values of a line - figures, dates, times, names, identifiers - and which two differ. Pure.

Knows lines of text only: not which of two is newer, and no list of facts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from chatbot.clause_words import told_alike
from chatbot.figures import Number, bare_days, dates, numbers
from chatbot.given_up import is_given_up, is_left_for
from chatbot.proper_names import (
    NAME_PARTICLES,
    english_names,
    identifiers,
    korean_names,
    person_or_place,
)

_WEEKDAY = re.compile(
    r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b|([월화수목금토일])요일", re.IGNORECASE
)
_WEEKDAYS = {
    name: number
    for number, names in enumerate(("mon 월", "tues 화", "wednes 수", "thurs 목", "fri 금",
                                    "satur 토", "sun 일"))
    for name in names.split()
}  # fmt: skip
_CLOCK = re.compile(
    r"\b\d{1,2}(?::\d\d)?\s?(?:am|pm|a\.m\.?|p\.m\.?)(?!\w)|\b\d{1,2}:\d\d\b"
    r"|(?:(?:오전|오후|아침|저녁|밤)\s?)?\d{1,2}\s?시(?!간)(?:\s?(?:\d{1,2}\s?분|반))?",
    re.IGNORECASE,
)
_SIGN_BEFORE = re.compile(r"[$€£₩]\s?\Z")
_UNIT_AFTER = re.compile(
    r"\s?(?:천만|백만|십만|[만천백억]|[kK]\b|thousand\b|million\b)?\s?"
    r"(?:%|°?C\b|(?:euros?|dollars?|pounds?|won|percent|guests?|people|nights?|days?|weeks?"
    r"|months?|hours?|minutes?|km|kg|years?)\b|시간|[원명개번살달장층호박년분잔일주%])?"
)
_PHONE = re.compile(r"(?<![\w-])\+?\d{2,4}(?:[- ]\d{3,4}){1,3}(?![A-Za-z\d_-])")
"""A Korean particle may follow."""
_HALF_OF_DAY = re.compile(r"[ap]\.?m|오전|오후|아침|저녁|밤|1[3-9]|2[0-3]|0\d:", re.IGNORECASE)
_LASTS = re.compile(r"일\s?(?:동안|간|만에|씩|치)")
"""Days that are counted, not named."""
_HOUR = re.compile(r"\bat (\d{1,2})(?=[.!,;]|\Z|\s(?:now|instead|today|tonight|sharp)\b)")
_BETWEEN = ("", *(f"{particle} " for particle in NAME_PARTICLES))
DATE_NAMES = re.compile(
    r"(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?",
    re.IGNORECASE,
)
MOVABLE = re.compile(
    rf"{DATE_NAMES.pattern}|\b(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b|\d{{4}}-\d\d"
    rf"|\d+\s?[월일시]|[월화수목금토일]요일|{_CLOCK.pattern}",
    re.IGNORECASE,
)
"""A day or a time: what is "moved" rather than "changed"."""


@dataclass(frozen=True, slots=True)
class Value:
    """A figure, date, time, name or identifier of a line. Equal keys of a kind mean the same."""

    kind: str
    key: str
    text: str
    of: str = ""
    """Of a name: "person" or "place" where that can be told."""


def names_day(line: str) -> bool:
    """Whether a line names a day of the week."""
    return bool(_WEEKDAY.search(line))


@lru_cache(maxsize=16_384)
def values(line: str) -> tuple[Value, ...]:
    """All values of a line, those of the most definite kinds first."""
    found = [Value("date", f"{m}-{d}", text.strip(" .,")) for (m, d), text in dates(line).items()]
    rest = line
    for value in found:
        rest = rest.replace(value.text, " ")
    for match in _WEEKDAY.finditer(rest):
        name = (match.group(1) or match.group(2)).lower()
        found.append(Value("day", f"w{_WEEKDAYS[name]}", match.group()))
    for match in _CLOCK.finditer(rest):
        found.append(Value("time", _clock_key(match.group()), match.group().strip()))
    rest = _CLOCK.sub(" ", rest)
    coded = [*_PHONE.findall(rest), *identifiers(rest)]
    found += [Value("id", word.casefold(), word) for word in coded]
    for word in coded:
        rest = rest.replace(word, " ")
    found += [Value(f"figure {n.unit}".rstrip(), _figure_key(n), _shown(rest, n))
              for n in numbers(rest)]  # fmt: skip
    names = dict.fromkeys((*_english(rest), *korean_names(rest)))
    found += [Value("name", name.casefold(), name, person_or_place(name, line)) for name in names]
    return tuple(found)


def changed_values(line: str, old: str) -> tuple[str, str]:
    """The wording of the first value that two lines differ in, old and new; or two times ""."""
    mine, theirs = values(line), values(old)
    kept = {value.key for value in mine} & {value.key for value in theirs}
    kept |= {key for a in mine for b in theirs if _same_hour(a, b) for key in (a.key, b.key)}
    for after in mine:
        if after.key in kept:
            continue
        # A new line that has another value as well takes the one that both have back.
        alike = [value for value in theirs if same_kind(value, after)]
        named = [value for value in alike if value.key in kept]
        rivals = [value for value in mine if same_kind(value, after)]
        if len(rivals) > 1 and is_left_for(line, after.text):
            continue
        left = named if len(rivals) > 1 and named else [v for v in alike if v.key not in kept]
        if left:
            return told_alike([value.text for value in left], line, old), after.text
    day = _changed_day(line, old)
    return day if day[1] else _changed_hour(line, old)


def mentions_old(line: str, old: str) -> bool:
    """Whether the new line names a value of the old one beside another of its kind."""
    return any(value.kind not in ("figure", "name") for value in _mentioned(line, old))


def gives_up_old(line: str, old: str) -> bool:
    """Whether it names it as what no longer holds, as in "not on Monday but on Friday"."""
    named = {value.text for value in _mentioned(line, old)}
    days = {int(value.key.split("-")[1]) for value in values(old) if value.kind == "date"}
    if len(_days(line)) > 1:
        named |= {found.group() for day in _days(line) & days if (found := _day_in(line, day))}
    return any(is_given_up(line, at, text) for text in named if (at := line.find(text)) >= 0)


def _mentioned(line: str, old: str) -> list[Value]:
    """Values of the old line that stand in the new one beside others of their kind."""
    mine, theirs = values(line), values(old)
    return [
        value
        for value in mine
        if any(other.key != value.key and same_kind(other, value) for other in mine)
        and any(other.key == value.key and same_kind(other, value) for other in theirs)
    ]


def same_kind(a: Value, b: Value) -> bool:
    """Whether one of two values can stand in the place of the other."""
    if a.kind.startswith("figure") and b.kind.startswith("figure"):
        return a.kind == b.kind or "figure" in (a.kind, b.kind)
    if a.of and b.of and a.of != b.of:
        return False
    return a.kind == b.kind or {a.kind, b.kind} == {"date", "day"}


def keys(line: str) -> set[str]:
    """What the values of a line are compared by."""
    return {value.key for value in values(line)}


def name_keys(line: str) -> frozenset[str]:
    """The names of a line, as they are compared."""
    return frozenset(value.key for value in values(line) if value.kind == "name")


def kinds(line: str) -> set[str]:
    """Which kinds of values a line has."""
    return {value.kind for value in values(line)}


def _changed_day(line: str, old: str) -> tuple[str, str]:
    """ "It's the 21st, not the 14th" of a date: its month stays."""
    new = [day for day in _days(line)]
    for value in values(old):
        if value.kind != "date" or "date" in kinds(line):
            continue
        said = int(value.key.split("-")[1])
        other = [day for day in new if day != said]
        if len(other) == 1:
            found = _day_in(line, other[0])
            return value.text, found.group() if found else str(other[0])
    return "", ""


def _changed_hour(line: str, old: str) -> tuple[str, str]:
    """ "It's at 8 now" of 7 pm, where neither line names another time."""
    times, hours = [v for v in values(old) if v.kind == "time"], _HOUR.findall(line)
    if len(times) != 1 or len(hours) != 1 or "time" in kinds(line):
        return "", ""
    same = int(times[0].key.split(":")[0]) % 12 == int(hours[0]) % 12
    return ("", "") if same or int(hours[0]) > 12 else (times[0].text, hours[0])


def _day_in(line: str, day: int) -> re.Match[str] | None:
    return re.search(rf"(?<!\d){day}(?:st|nd|rd|th|\s?일)", line)


def _days(line: str) -> frozenset[int]:
    """Days of a month that a line names without their month."""
    return frozenset() if _LASTS.search(line) else bare_days(line)


def _english(text: str) -> list[str]:
    """Names side by side are one, also with a particle between them."""
    names = [name for name in english_names(text) if not DATE_NAMES.fullmatch(name)]
    joined: list[str] = []
    for name in names:
        longer = (f"{joined[-1]} {between}{name}" for between in _BETWEEN) if joined else ()
        whole = next((one for one in longer if one in text), None)
        if whole:
            joined[-1] = whole
        else:
            joined.append(name)
    return joined


def _clock_key(text: str) -> str:
    hour, *minutes = (int(n) for n in re.findall(r"\d+", text))
    late = re.search(r"p\.?m|오후|저녁|밤", text, re.IGNORECASE)
    minute = minutes[0] if minutes else 30 if "반" in text else 0
    return f"{hour + 12 if late and hour < 12 else hour}:{minute:02}"


def _figure_key(number: Number) -> str:
    return max(number.forms, key=lambda form: (len(form), form))


def _shown(text: str, number: Number) -> str:
    """The figure with its unit, as it stands in the text."""
    # Patterns with the figure itself in them would have to be compiled for each figure.
    first = text.find(number.text)
    at = first
    while at >= 0:
        if sign := _SIGN_BEFORE.search(text, max(0, at - 2), at):
            return text[sign.start() : at + len(number.text)].strip()
        at = text.find(number.text, at + 1)
    unit = _UNIT_AFTER.match(text, first + len(number.text)) if first >= 0 else None
    return (number.text + unit.group()).strip() if unit else number.text


def _same_hour(a: Value, b: Value) -> bool:
    """Whether "3" may stand for "3 pm": one of two times does not say which half of the day."""
    if a.kind != "time" or b.kind != "time":
        return False
    (hour, minute), (other, other_minute) = (value.key.split(":") for value in (a, b))
    said = _HALF_OF_DAY.search(a.text) and _HALF_OF_DAY.search(b.text)
    return not said and minute == other_minute and int(hour) % 12 == int(other) % 12
