"""Which earlier line a new one corrects, and from what value to what. Pure.

Knows lines of text only: no turn, no summary and no list of facts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chatbot.figures import MEASURES, Number, dates, numbers
from chatbot.proper_names import english_names, identifiers, korean_names, korean_stem
from chatbot.words import patterns, word_set
from retrieval.words import STOP_TERMS, lexical_terms

_UNITS = MEASURES - {"살"}
"""A year of age is written like the stem of "live"."""
RECENT_LINES = 6
""""No, I meant Busan" has no subject of its own: it corrects one of so many lines before it."""
_LEAST_SHARE = 0.34
_CUE = patterns("correction")
_ENDS_IT = re.compile(
    r"\b(?:no longer|any ?more|quit|gave up|given up|stopped)\b"
    r"|더 이상|이제(?:는)? (?:\S+ ){0,2}(?:안|못) |끊었|그만",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:instead|rather|actually|not|changed? (?:my|our|his|her|their) minds?"
    r"|after all|in the end)\b"
    r"|대신|말고|아니|바꿨|바뀌|바꾸|변경|사실",
    re.IGNORECASE,
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
_OWNER = re.compile(
    r"\b(?!(?:It|That|Let|There|Here|What|He|She|Who|Where|When|How|This)['’])([A-Z]\w+)['’]s?\b"
    r"|([가-힣]{2,4})(?=의\s|\s?씨|\s?님)"
)
_SIGN_BEFORE = re.compile(r"[$€£₩]\s?\Z")
_UNIT_AFTER = re.compile(
    r"\s?(?:천만|백만|십만|[만천백억]|[kK]\b|thousand\b|million\b)?\s?"
    r"(?:%|°?C\b|(?:euros?|dollars?|pounds?|won|percent|guests?|people|nights?|days?|weeks?"
    r"|months?|hours?|minutes?|km|kg|years?)\b|시간|[원명개번살달장층호박년분%])?"
)
_PHONE = re.compile(r"(?<![\w-])\+?\d{2,4}(?:[- ]\d{3,4}){1,3}(?![A-Za-z\d_-])")
"""A Korean particle may follow."""
_HALF_OF_DAY = re.compile(r"[ap]\.?m|오전|오후|아침|저녁|밤|1[3-9]|2[0-3]|0\d:", re.IGNORECASE)
_DATE_NAMES = re.compile(
    r"(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?",
    re.IGNORECASE,
)
MOVABLE = re.compile(
    rf"{_DATE_NAMES.pattern}|\b(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b|\d{{4}}-\d\d"
    rf"|\d+\s?[월일시]|[월화수목금토일]요일|{_CLOCK.pattern}",
    re.IGNORECASE,
)
"""A day or a time: what is "moved" rather than "changed"."""
_STATES = re.compile(
    r"\b(?:is|are|was|were|['’]s|costs?|lives?|named?|called|has|have|will be|starts?|leaves?)\b"
    r"|(?:이에요|예요|입니다|이야|이다|거든요?|살아요?|삽니다|있어요?|[했었았혔렸였됐]어요?|[했었았혔렸였됐]습니다)\W*$",
    re.IGNORECASE,
)


_TOPIC_END = re.compile(
    r"\b(?:is|are|was|were|costs?|lives?|named?|called|has|have|will be|starts?|leaves?)\b"
    r"|(?<=[가-힣])[은는이가](?=\s)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Value:
    """A figure, date, time, name or identifier of a line. Equal keys of a kind mean the same."""

    kind: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a line corrects. `index` is the place of the earlier line in the sequence given.

    `old` and `new` are the values, "" where the lines have none that can be told.
    `has_subject`: the new line itself says what it is about.
    """

    index: int
    old: str = ""
    new: str = ""
    has_subject: bool = True


def sounds_like_correction(line: str) -> bool:
    """Whether a line has words by which people take something back."""
    return bool(_CUE.search(line))


def find_corrected(line: str, earlier: Sequence[str]) -> Change | None:
    """The line of `earlier`, oldest first, that `line` takes the place of; the newest of equals.

    A line without words of correction only replaces one that says the same with one other value.
    """
    if line.rstrip().endswith(("?", "？")):
        return None
    if not sounds_like_correction(line):
        return _restated(line, earlier)
    best: tuple[float, int] | None = None
    for index, old in enumerate(earlier):
        behind = len(earlier) - index
        score = _fit(line, old, recent=behind <= RECENT_LINES, last=behind == 1)
        if score > 0 and (best is None or (score, index) >= best):
            best = (score, index)
    return None if best is None else _change(line, earlier[best[1]], best[1])


def names_day(line: str) -> bool:
    """Whether a line names a day of the week."""
    return bool(_WEEKDAY.search(line))


def shares_subject(line: str, other: str) -> bool:
    """Whether both lines name the same subject, in words or by a name."""
    theirs = subject(other)
    return bool(_names(line) & _names(other)) or any(_among(w, theirs) for w in subject(line))


def changed_values(line: str, old: str) -> tuple[str, str]:
    """The wording of the first value that two lines differ in, old and new; or two times ""."""
    mine, theirs = values(line), values(old)
    kept = {value.key for value in mine} & {value.key for value in theirs}
    kept |= {key for a in mine for b in theirs if _same_hour(a, b) for key in (a.key, b.key)}
    for after in mine:
        if after.key in kept:
            continue
        # A new line that has another value as well takes the one that both have back.
        alike = [value for value in theirs if _same_kind(value, after)]
        named = [value for value in alike if value.key in kept]
        rivals = [value for value in mine if _same_kind(value, after)]
        left = named if len(rivals) > 1 and named else [v for v in alike if v.key not in kept]
        if left:
            return left[0].text, after.text
    return "", ""


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
    found += [Value("name", name.casefold(), name) for name in names]
    return tuple(found)


@lru_cache(maxsize=16_384)
def subject(line: str) -> frozenset[str]:
    """What a line is about: stems of its words without values, figures and words of mere form."""
    named = {part for v in values(line) if v.kind in ("name", "id") for part in v.key.split()}
    english = {
        term
        for term in lexical_terms(re.sub(r"[가-힣]+", " ", line))
        if len(term) > 2 and term not in STOP_TERMS and not term.isdigit()
    }
    words = re.findall(r"(?<![\d가-힣])[가-힣]{2,}", line)
    korean = {korean_stem(word) for word in words}
    formal = word_set("no_subject")
    dated = {term for text in _DATE_NAMES.findall(line) for term in lexical_terms(text)}
    found = {term for term in english | korean if term and term not in formal}
    return frozenset(found - dated - named - _UNITS)


def clues(line: str) -> frozenset[str]:
    """Keys of which two lines have one in common if one may correct the other.

    Lines without a subject of their own correct what was said just before, whatever it was.
    """
    words = {word[:2] if "가" <= word[0] <= "힣" else word for word in subject(line)}
    return frozenset(words | {value.key for value in values(line)})


def _english(text: str) -> list[str]:
    """Names side by side are one."""
    names = [name for name in english_names(text) if not _DATE_NAMES.fullmatch(name)]
    joined: list[str] = []
    for name in names:
        if joined and f"{joined[-1]} {name}" in text:
            joined[-1] = f"{joined[-1]} {name}"
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


def _same_kind(a: Value, b: Value) -> bool:
    if a.kind.startswith("figure") and b.kind.startswith("figure"):
        return a.kind == b.kind or "figure" in (a.kind, b.kind)
    return a.kind == b.kind or {a.kind, b.kind} == {"date", "day"}


def _fit(line: str, old: str, *, recent: bool, last: bool) -> float:
    """How well `line` reads as a correction of `old`; 0 for not at all."""
    if not _same_owner(line, old):
        return 0.0
    both = _names(line) & _names(old)
    mine, theirs = subject(line) | both, subject(old) | both
    shared = len([term for term in mine if _among(term, theirs)])
    share = shared / max(1, min(len(mine), len(theirs)))
    before, _ = changed_values(line, old)
    if before and _mentions_old(line, old):
        return 4 + share
    if _ENDS_IT.search(line) and not before:
        return 1 + share if share >= _LEAST_SHARE else 0.0
    if before and share >= _LEAST_SHARE:
        return 2 + share + 0.1 * shared
    if before and not shared and not _OWNER.search(line):
        # Without a subject of its own; a weekday rather stands for a weekday than for a date.
        fits = 0.1 * _of_one_kind(line, old)
        return 0.5 + fits if recent and not mine else 0.3 + fits if last else 0.0
    wordy = _INSTEAD.search(line) and not values(line) and not values(old)
    return 1 + share if wordy and share >= _LEAST_SHARE and mine != theirs else 0.0


def _names(line: str) -> frozenset[str]:
    return frozenset(value.key for value in values(line) if value.kind == "name")


def _of_one_kind(line: str, old: str) -> bool:
    return bool({value.kind for value in values(line)} & {value.kind for value in values(old)})


def _mentions_old(line: str, old: str) -> bool:
    """Whether the new line names a value of the old one, as in "not on Monday but on Friday"."""
    mine = {(value.kind, value.key) for value in values(line)}
    theirs = {(value.kind, value.key) for value in values(old)}
    kinds = [value.kind for value in values(line)]
    return any(kinds.count(kind) > 1 for kind, _ in mine & theirs)


def _same_owner(line: str, old: str) -> bool:
    """ "Tom's birthday" does not correct "Priya's birthday"."""
    mine, theirs = (
        {word for found in _OWNER.findall(text) for word in found if word} for text in (line, old)
    )
    return not mine or not theirs or bool(mine & theirs)


def _restated(line: str, earlier: Sequence[str]) -> Change | None:
    mine = subject(line)
    if len(mine) < 1 or not values(line) or not _STATES.search(line):
        return None
    for index in range(len(earlier) - 1, -1, -1):
        old = earlier[index]
        theirs = subject(old)
        shared = sum(_among(term, theirs) for term in mine)
        # Two words in common say more than one: then a verb may differ.
        least = 0.6 if shared > 1 else 0.8
        if shared < least * max(len(mine), len(theirs), 1) or _of_two_things(line, old):
            continue
        my_keys, their_keys = _keys(line), _keys(old)
        if len(my_keys - their_keys) == 1:  # more are another thing of a series
            change = _change(line, old, index)
            if change.old:
                return change
    return None


def _of_two_things(line: str, old: str) -> bool:
    """ "The younger daughter is 9" says nothing about "the older daughter": before the verb, each
    has a word of its own."""
    mine, theirs = subject(_topic(line)), subject(_topic(old))
    ours, others = subject(line), subject(old)
    return any(not _among(w, others) for w in mine) and any(not _among(w, ours) for w in theirs)


def _topic(line: str) -> str:
    """What stands before the verb, or before the particle of the subject."""
    end = _TOPIC_END.search(line)
    return line[: end.start()] if end else ""


def _keys(line: str) -> set[str]:
    return {value.key for value in values(line)}


def _change(line: str, old: str, index: int) -> Change:
    before, after = changed_values(line, old)
    return Change(index, before, after, shares_subject(line, old))


def _among(term: str, terms: frozenset[str]) -> bool:
    if term in terms:
        return True
    if not "가" <= term[0] <= "힣":
        return False
    return any(other.startswith(term) or term.startswith(other) for other in terms)
