"""What a line is about, told by its words, and whether two lines are about the same thing. Pure.

Knows lines of text only: no turn and no list of facts.
"""

from __future__ import annotations

import re
from functools import lru_cache

from chatbot.figures import MEASURES
from chatbot.line_values import DATE_NAMES, name_keys, values
from chatbot.proper_names import korean_stem
from chatbot.words import word_set
from retrieval.words import STOP_TERMS, lexical_terms

_UNITS = MEASURES - {"살"}
"""A year of age is written like the stem of "live"."""
_OWNER = re.compile(
    r"\b(?!(?:It|That|Let|There|Here|What|He|She|Who|Where|When|How|This)['’])([A-Z]\w+)"
    r"['’](?!s\s(?:at|on|in|now|not|been|going|here|there|from)\s)s?\b"
    r"|([가-힣]{2,4})(?=의\s|\s?[씨님]의?\s[가-힣])"
)
_MINE = re.compile(r"\b(?:my|our)\s|(?:^|\s)(?:제|내|우리)\s", re.IGNORECASE)
_TOPIC_END = re.compile(
    r"\b(?:is|are|was|were|costs?|lives?|named?|called|has|have|will be|starts?|leaves?)\b"
    r"|(?<=[가-힣])[은는이가](?=\s)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[;:,]\s|\s[–—-]\s|\s(?:and|but|so|because|since)\s|(?<=[고서])\s|(?<=는데)\s|(?<=지만)\s"
    r"|(?<=보니)\s|(?<=더니)\s|(?<=니까)\s"
)
_NEIGHBOURS = re.compile(r"(?<![\w'’-])(?=([\w'’-]+) ([\w'’-]+))")
_BARE = re.compile(r"(?:[은는이가을를의에도와과로만]|에서|까지|부터|[한던된할린운])$")
"""Ends of Korean words that do not narrow the next one down: particles and forms of verbs."""
_JOINED = re.compile(r"(?:기로|지는|지도|지|려고|려면|도록|면서)$")
_PURPOSE = re.compile(
    r"\b([a-z]+) (?:for|of|at|in) (?:the |my |our |an? )?([a-z]+)\b", re.IGNORECASE
)

_LABEL = re.compile(
    r"(?:^|[.;:,]\s)\W*(?:(?:now|so|and|but|also|then|actually|sorry|no|wait)\W+)*"
    r"(?:(?:the|our|my|your|his|her|their|this|that)\s(?-i:[A-Z][\w’'-]*\s)?([a-z][\w’'-]*)"
    r"|([A-Za-z][\w’'-]*))\s(?:(?:no\.?|nr\.?|number)\s)?#?((?=[\w-]*\d)[\w-]*\w)\b",
    re.IGNORECASE,
)
"""A noun with a number behind it where a clause begins: "invoice 4711", "phase 2", "order A-17"."""
_VERB_NEXT = re.compile(
    rf"\d\W+(?:{_TOPIC_END.pattern}|(?:ends?|begins?|comes?|came|goes|needs?|takes?|failed|must|can"
    r"|should|will|does|did)\b)",
    re.IGNORECASE,
)
"""Behind a small number: "phase 2 ends", but "book 8 seats"."""
_ORDINAL = re.compile(r"\b(second|third|fourth|fifth|other|2nd|3rd)\s([a-z]+)", re.IGNORECASE)
_LABEL_KO = re.compile(r"^(?:\S+\s)??([가-힣]{2,})\s?(\d[\d-]*)(?:번|호|호차|차)?[은는이가]\s")


_LEAD_IN = re.compile(
    r"^\W*(?:an? )?(?:(?:small|quick|brief|short|minor|little) )?"
    r"(?:update|correction|change|news|note|heads[ -]up)\s*[:—–]\s*"
    r"|^\W*(?:(?:작은|간단한|짧은) )?(?:변경|정정|수정|업데이트|소식)(?: ?사항)?\s*[:—–]\s*",
    re.IGNORECASE,
)
"""Says that something is new, and not of what."""


@lru_cache(maxsize=16_384)
def subject(line: str) -> frozenset[str]:
    """What a line is about: stems of its words without values, figures and words of mere form."""
    line = _LEAD_IN.sub("", line)
    named = {part for v in values(line) if v.kind in ("name", "id") for part in v.key.split()}
    english = {
        term
        for term in lexical_terms(re.sub(r"[가-힣]+", " ", line))
        if len(term) > 2 and term not in STOP_TERMS and not term[0].isdigit()
    }
    words = re.findall(r"(?<![\d가-힣])[가-힣]{2,}", line)
    korean = {_stem(word) for word in words}
    formal = word_set("no_subject")
    dated = {term for text in DATE_NAMES.findall(line) for term in lexical_terms(text)}
    found = {term for term in english | korean if term and term not in formal}
    return frozenset(found - dated - named - _UNITS)


def _stem(word: str) -> str:
    """A word of one syllable loses its particle as well, and verbs what joins them to others."""
    if len(word) == 2 and word[1] in "은는을를":
        return word[0]
    stem = korean_stem(word)
    return _JOINED.sub("", stem) if len(stem) > 2 else stem


def clues(line: str) -> frozenset[str]:
    """Keys of which two lines have one in common if one may correct the other.

    Lines without a subject of their own correct what was said just before, whatever it was.
    """
    words = {word[:2] if "가" <= word[0] <= "힣" else word for word in subject(line)}
    return frozenset(words | {value.key for value in values(line)})


def shares_subject(line: str, other: str) -> bool:
    """Whether both lines name the same subject, in words or by a name."""
    theirs = subject(other)
    return bool(name_keys(line) & name_keys(other)) or any(among(w, theirs) for w in subject(line))


def same_owner(line: str, old: str) -> bool:
    """ "Tom's birthday" does not correct "Priya's birthday"."""
    mine, theirs = (
        {word for found in _OWNER.findall(text) for word in found if word} for text in (line, old)
    )
    if mine and not theirs and _MINE.search(old):
        return any(word in old for word in mine)
    return not mine or not theirs or bool(mine & theirs)


def has_owner(line: str) -> bool:
    """Whether a line says whose thing it is about."""
    return bool(_OWNER.search(line))


def of_two_things(line: str, old: str) -> bool:
    """ "The younger daughter is 9" says nothing about "the older daughter": before the verb, each
    has a word of its own. Nor does "the budget for travel", or "the second van" about "the van"."""
    mine, theirs = subject(topic(line)), subject(topic(old))
    ours, others = subject(line), subject(old)
    mine, theirs = _told(mine, others), _told(theirs, ours)
    if _numbered_otherwise(line, old):
        return True
    if any(not among(w, others) for w in mine) and any(not among(w, ours) for w in theirs):
        return True
    return _is_narrowed(line, ours, others) or _has_other_purpose(line, old, ours, others)


def _numbered_otherwise(line: str, old: str) -> bool:
    """ "Invoice 4712 is open" is no news of "invoice 4711", nor "the second" of "the first"."""
    mine, theirs = _labels(line), _labels(old)
    if any(mine[noun] != theirs[noun] for noun in mine.keys() & theirs.keys()):
        return True
    ours, others = (
        {(order.lower(), noun.lower()) for order, noun in _ORDINAL.findall(text)}
        for text in (line, old)
    )
    return any(subject(noun) <= subject(old) for _, noun in ours - others if subject(noun))


def _told(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Without what only says which kind of value follows, if the other line says nothing of it."""
    formal = word_set("attributes")
    return words if others & formal else words - formal


def _is_bare(kind: str) -> bool:
    """Whether a figure has no unit; the word behind it may be any."""
    name, _, unit = kind.partition(" ")
    return name == "figure" and unit not in MEASURES


@lru_cache(maxsize=16_384)
def _labels(line: str) -> dict[str, str]:
    """The things that a line is about and that have a number for a name: noun -> number."""
    found: dict[str, str] = {}
    numbers = {v.key: v.text for v in values(line) if v.kind == "id" or _is_bare(v.kind)}
    for first, noun, number in _LABEL.findall(line):
        kind, label = (first or noun).lower(), number.casefold()
        bare = any(label in (key, text.casefold()) for key, text in numbers.items())
        counted = len(label) < 3 and label.isdigit() and not _VERB_NEXT.search(line)
        if bare and not counted and subject(kind) and not _TOPIC_END.fullmatch(kind):
            found.setdefault(kind, label)
    for noun, number in _LABEL_KO.findall(line):
        found.setdefault(noun, number)
    return found


def among(term: str, terms: frozenset[str]) -> bool:
    """Whether a stem is one of the others; Korean ones may be longer or shorter."""
    if term in terms:
        return True
    if not "가" <= term[0] <= "힣":
        return False
    # 차가 and 차는: words of one syllable keep some particles.
    if len(term) == 2 and term[1] in "이가" and term[0] in terms:
        return True
    if len(term) == 1 and not terms.isdisjoint({f"{term}이", f"{term}가"}):
        return True
    return len(term) > 1 and any(
        len(other) > 1 and (other.startswith(term) or term.startswith(other)) for other in terms
    )


def value_clause(line: str, text: str) -> str:
    """The clause of a line that holds a text; the line if none does."""
    return next((clause for clause in _CLAUSE.split(line) if text in clause), line)


def clause_with(line: str, text: str) -> str:
    """The same; the line if that clause has no subject."""
    clause = value_clause(line, text)
    return clause if subject(clause) else line


def _is_narrowed(line: str, ours: frozenset[str], others: frozenset[str]) -> bool:
    """Whether a word of both stands behind a word of this line alone that narrows it down."""
    for before, word in _NEIGHBOURS.findall(line):
        narrow, wide = _only(before, ours), _only(word, ours)
        bare = not "가" <= before[0] <= "힣" or _BARE.search(before) is None
        if narrow and wide and bare and not among(narrow, others) and among(wide, others):
            return True
    return False


def _has_other_purpose(line: str, old: str, ours: frozenset[str], others: frozenset[str]) -> bool:
    """Whether what is named in both is for one thing here and for another there."""
    mine, theirs = (
        {(_only(head, known), _only(end, known)) for head, end in _PURPOSE.findall(text)}
        for text, known in ((line, ours), (old, others))
    )
    return any(
        head and head == head_old and end and end_old and end not in others and end_old not in ours
        for head, end in mine
        for head_old, end_old in theirs
    )


def _only(word: str, known: frozenset[str]) -> str:
    """The stem of one word if it is among those of the line's subject, else ""."""
    return next((stem for stem in subject(word) if stem in known), "")


def topic(line: str) -> str:
    """What stands before the verb, or the subject with its particle."""
    end = _TOPIC_END.search(line)
    if end is None:
        return ""
    return line[: end.end() if end.group() in "은는이가" else end.start()]
