"""What a clause says of what: an attribute and the value it has, told by its form. Pure.

Knows single lines of text: not which of two is newer. "The worktop will be oak" gives {worktop}
and {oak}, "계단은 참나무로 하기로 했어요" {계단} and {참나무}; other forms give nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from chatbot.words import patterns, word_set
from retrieval.words import STOP_TERMS, lexical_terms

_SINCE = patterns("since")
_CLAUSE = re.compile(
    r"[;:,]\s|\s[–—-]\s|\s(?:and|but|so|because)\s|(?<=는데)\s"
    r"|(?<=[아어해와워여려대져라러]서)\s(?=\S+\s\S)|(?<=보니)\s|(?<=더니)\s|(?<=지만)\s|\s(?:whenever|when|while)\s"
)
_WORD = re.compile(r"[^\s,.!?…\"“”()]+")
_ASKS = re.compile(
    r"[?？]|^\W*(?:why|how|what|who|is|are|do|does|can)\b"
    r"|주세요|줘|줄래|알려|도와",
    re.IGNORECASE,
)
_STATES_KO = re.compile(r"(?<![까죠])(?:요|[니]다)\W*$")
_MOST_WORDS_OF_LINE = 12
_MOST_WORDS = 4
"""A value of more words is a sentence of its own."""

_DET = r"(?:the|my|our|his|her|their|its|a|an)"
_NOUNS = rf"(?P<about>(?:{_DET}\s)?[\w'’-]+(?:\s[\w'’-]+){{0,3}}?)"
_VALUE = r"(?P<value>[\w'’.+-]+(?:\s[\w'’.+-]+){0,3})"
_TAKE = (
    r"(?:chose|choose|picked|pick|tak(?:e|ing)|go(?:ing)? (?:with|for)|went (?:with|for)"
    r"|us(?:e|ing)"
    r"|settled on|decided on|agreed(?: with (?:the |our |my )?\w+)? on)"
)
_WE = r"(?:i|we)(?:['’](?:re|m|ve|ll))?"
_STAY = r"(?:[a-z]+s|live|work|meet|sleep|sit|stay)"
_HAVE = r"(?:have|eat|drink)"
_ENGLISH = tuple(
    re.compile(rf"^(?:{form})$", re.IGNORECASE)
    for form in (
        rf"{_NOUNS}\s(?:is|are|will be|is going to be|are going to be|has become|became)\s"
        rf"(?:actually )?(?:called |named |set to )?{_VALUE}",
        rf"(?:i|we)\s(?:call|named|renamed)\s{_NOUNS}\s{_VALUE}",
        rf"{_WE}\s(?:have |will |are |am )?{_TAKE}\s{_VALUE}\s(?:for|as)\s{_NOUNS}",
        rf"for\s{_NOUNS}\s{_WE}\s(?:have |will |are |am )?{_TAKE}\s{_VALUE}",
        rf"(?:they|{_WE})\s(?:have )?(?:switched|changed|swapped)\s{_NOUNS}\sto\s{_VALUE}",
        rf"{_NOUNS}\s(?:has |have |was |were )?(?:been )?(?:switched|changed)\sto\s{_VALUE}",
        rf"(?P<verb>i|we)\s{_HAVE}\s{_VALUE}\sfor\s{_NOUNS}",
        rf"{_NOUNS}\s(?P<verb>{_STAY})\s(?:in|at|with|under|near)\s{_VALUE}",
        rf"(?P<verb>(?:i|we)\s(?:take|have|drink|eat))\s{_NOUNS}\s(?:with )?"
        r"(?P<value>[\w-]+(?: milk)?)",
    )
)
_CALLED = re.compile(r"\b(?:called|named|call|renamed)\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"\b(?:switched|changed|swapped|renamed|has become|became)\b"
    r"|바꾸|바꿨|바꿔|교체|변경",
    re.IGNORECASE,
)
_SETTLES = re.compile(rf"\b(?:will be|going to be|{_TAKE})\b", re.IGNORECASE)

_COPULA = re.compile(
    r"(?:이었|였)?(?:이에요|예요|입니다|이야|이래요|래요|이랍니다|랍니다|이거든요|거든요|인데요|이네요|이더라고요|더라고요|이죠|다네요)$"
    r"|(?:이라고|라고)$"
)
_WILL = re.compile(r"^(?:거|것|건|게|할|될|볼|갈)?(?:예요|이에요|입니다|야|래요)$")
_PARTICLE = re.compile(r"(?:께서는|께서|에서는|에서|에는|이는|이가|[은는이가을를에])$")
_TO = re.compile(r"(?<!기)(?:으로|로)$")
_SETTLED = re.compile(
    r"(?:기로|골랐|골라|고른|정했|정해|정하|했어|했습|했다|할게|할래|할 거|하려|합의|결정"
    r"|바꾸|바꿨|바꿔|교체|변경|가기로|갈게|해 ?줘"
    r"|해 ?주)"
)
_HOLDS = re.compile(
    r"(?:이라고|라고)\s(?:바꿔 )?(?:해요|합니다|불러요|부릅니다|부르|지었|지어)\S*$"
)
_FORMAL = frozenset(("참고로", "사실", "그냥", "올해", "다시"))
_SPEAKER = frozenset(
    ("저", "제", "나", "내", "우리", "저희", "저는", "제가", "우리는", "나는", "저도")
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What is said of what. `about` holds stems; `called`: the value is its name.

    `settled`: it was decided on; `changes`: and the form says that something else was before.
    """

    about: frozenset[str]
    value: frozenset[str]
    text: str
    verb: str = ""
    called: bool = False
    settled: bool = False
    changes: bool = False


def without_since(line: str) -> str:
    """The line without "now", "from this month on" and the like, which are no part of a value."""
    return " ".join(_SINCE.sub(" ", line).split())


def is_since(line: str) -> bool:
    """Whether a line says from when on it holds, so that something else held before."""
    return bool(_SINCE.search(line))


def is_statement(line: str) -> bool:
    """Whether a short line says something of something, as far as its form tells."""
    words = line.split()
    if len(words) > _MOST_WORDS_OF_LINE or _ASKS.search(line):
        return False
    if _STATES_KO.search(line):
        return any(_PARTICLE.search(word.rstrip(",")) for word in words[:-1] if len(word) > 1)
    return any(frame.verb or frame.called or frame.settled for frame in frames(line))


def clauses(line: str) -> list[str]:
    """The parts of a line that may each say something of their own."""
    return [part for part in _CLAUSE.split(line) if part.strip()]


@lru_cache(maxsize=16_384)
def frames(line: str) -> tuple[Frame, ...]:
    """What the clauses of a line say, as far as their form tells."""
    found = (_frame(clause) for clause in clauses(without_since(line)))
    return tuple(frame for frame in found if frame is not None)


def _frame(clause: str) -> Frame | None:
    return _korean(clause) if re.search("[가-힣]", clause) else _english(clause)


def _english(clause: str) -> Frame | None:
    text = re.sub(r"\s(?:instead|then|after all|please)$", "", " ".join(_WORD.findall(clause)))
    for form in _ENGLISH:
        found = form.match(text)
        if found is None:
            continue
        about, said = _stems(found["about"]), found["value"]
        # "A" may be a value as well: a grade, a group, a size.
        value = _stems(said) or frozenset(said.split() if said.isupper() else ())
        if about - {"name"} and value:
            verb = " ".join(_stems(found.groupdict().get("verb") or ""))
            called = bool(_CALLED.search(text) or about & word_set("one_value"))
            changes = bool(_CHANGES.search(text))
            settled = changes or bool(_SETTLES.search(text))
            return Frame(about - {"name"}, value, found["value"], verb, called, settled, changes)
    return None


def _stems(text: str) -> frozenset[str]:
    """Stems of a few words, those of names and figures among them."""
    return frozenset(term for term in lexical_terms(text) if term not in STOP_TERMS)


def _korean(clause: str) -> Frame | None:
    """The value is what stands before the copula, or with 로 before a verb of deciding."""
    text = " ".join(_WORD.findall(clause))
    if found := _HOLDS.search(text):
        return _with_value(text[: found.start()].split(), called=True)
    words = text.split()
    for at in range(len(words) - 2, 0, -1):
        settled = " ".join(words[at + 1 :])
        if _TO.search(words[at]) and _SETTLED.search(settled):
            value = [*words[:at], _TO.sub("", words[at])]
            return _with_value(value, settled=True, changes=bool(_CHANGES.search(settled)))
    if words and _COPULA.search(words[-1]) and not _WILL.search(words[-1]):
        return _with_value([*words[:-1], _COPULA.sub("", words[-1])])
    return None


def _with_value(
    words: list[str], *, called: bool = False, settled: bool = False, changes: bool = False
) -> Frame | None:
    """The words behind the last particle are the value, the others what it is of."""
    ends = [n for n, word in enumerate(words[:-1]) if len(word) > 1 and _PARTICLE.search(word)]
    cut = ends[-1] + 1 if ends else 0
    about, parts = _korean_stems(words[:cut]), [word for word in words[cut:] if word]
    if not about - {"이름"} or not parts or len(parts) > _MOST_WORDS:
        return None
    called = called or bool(about & word_set("one_value"))
    text = " ".join(parts)
    return Frame(about - {"이름"}, frozenset(parts), text, "", called, settled, changes)


def _korean_stems(words: list[str]) -> frozenset[str]:
    words = [word for word in words if not word.endswith(("랑", "하고")) and word not in _FORMAL]
    stems = (_PARTICLE.sub("", word) if len(word) > 1 else word for word in words)
    found = {stem.removesuffix("의") if len(stem) > 2 else stem for stem in stems}
    return frozenset(found - _SPEAKER - {""})
