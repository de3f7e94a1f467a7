"""Names and identifiers in English and Korean text, told by their form. Knows no chat."""

from __future__ import annotations

import re
from functools import cache

from chatbot.words import word_groups, word_set

_CAPITAL_WORD = re.compile(r"[A-Z][A-Za-zÀ-ɏ0-9'’&-]*|(?<![A-Za-z])[a-z]+[A-Z][A-Za-z0-9]*")
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9-])(?=[A-Za-z-]*\d)(?=[\d-]*[A-Za-z])[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
)
# Not right behind a digit, where it is a unit.
_LATIN_WORD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9'’+#.-]*[A-Za-z0-9+#]")
_PLAIN_UNIT = re.compile(
    r"\d+[\d.,:]*(?:st|nd|rd|th|s|am|pm|k|km|kg|g|m|cm|mm|h|hr|hrs|min|mins|x|gb|mb|tb|ml|l|mg"
    r"|mph|ft|in|lb|lbs|usd|eur|krw|d|w|y|yr|yrs|px|fps|kcal|kb|kbps|mbps|hz|khz|ghz|v|w|kwh"
    r"|(?:kilogram|kilo|gram|kilometer|kilometre|meter|metre|mile|liter|litre|pound|ounce|euro|dollar"
    r"|percent)s?|-?(?:year|day|week|month|hour|minute|page|night|person|room|bed|star)s?"
    r"(?:-old|-long)?|(?-i:(?:-[a-z]{3,})+))",
    re.IGNORECASE,
)
_INITIAL = re.compile(r"(?:^|[.!?:;\n•*(\"“‘—–-]|\d[.)])\s*[\"“‘(*_]*$")
NAME_PARTICLES = (
    "de", "da", "di", "du", "del", "della", "der", "dos", "la", "van", "von", "van der", "van den",
    "von der", "de la", "ter", "ten", "bin", "al", "el",
)  # fmt: skip
"""Stand between a given and a family name, as in Imke de Vries."""
_NAME_VERB = re.compile(
    r"\s+(?:wants?|wanted|said|says|lives?|lived|works?|worked|likes?|asked|plans?|prefers?|loves?"
    r"|told|thinks?|(?:is|was) (?:an? |his|her|their|the user['’]s)|and\s+[A-Z]|[A-Z][a-z]+"
    rf"|(?:{'|'.join(NAME_PARTICLES)})\s+[A-Z][a-z]+)\b"
)
_SURNAME = "김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민"
_GIVEN = (
    "민준서지현수영은진호성우재혜미정연희경아유하도윤태승동상철훈기원주빈혁석환선숙순자란나리"
    "소예채시건규형용찬창광명병종중인일율솔별다온안결담봄빛늘라래람슬린봉복옥필헌훤휘세승석겸균근효웅애엽범운향"
)
_KOREAN_WORD = re.compile(r"[가-힣]{2,}")
_KOREAN_PARTICLE = re.compile(
    r"(?:이라는|라는|이라고|라고|에게서|한테서|에서는|에서도|으로는|에게는|에게|한테|께서|에서|으로"
    r"|까지|부터|처럼|보다|이랑|이나|이며|이고|이다|입니다|이었다|였다|이에요|예요|이야|인데|이라서|이는|이가|이를|이와|은|는|이|가"
    r"|을|를|의|에|도|와|과|로|만|랑|나|며|씨|님)$"
)
_KOREAN_ENDING = re.compile(
    r"(?:이었어요|였어요|이에요|예요|입니다|이거든요|거든요|이라서|이야|이래요|래요|했어요|했습니다|합니다|해요|했다"
    r"|하기로|하려고|하는데|하는|하던|하고|하면|했는데|됐어요|됐습니다|됩니다|돼요|되는|었어요|았어요|었습니다|았습니다"
    r"|습니다|어요|아요|네요|는데|인데|한다|된다|까지는|까지만|에서만|하지만|지만)$"
)
_KOREAN_PERSON = re.compile(f"[{_SURNAME}][{_GIVEN}][{_GIVEN}]")
_KOREAN_GIVEN = re.compile(f"[{_GIVEN}][{_GIVEN}]")
_KOREAN_TITLED = re.compile(
    r"(?<![가-힣])([가-힣]{1,4}?)\s?(?:씨|과장|부장|대리|차장|팀장|사장|대표|이사|교수|박사|원장|선생님"
    r"|의사|변호사|감독|코치|선배|후배)(?![가-힣]{3})(?:님)?(?:은|는|이|가|을|를|의|에게|께서|과|와|도)?(?![가-힣])"
)
_KOREAN_CALLED = re.compile(rf"([{_GIVEN}][{_GIVEN}])이(?:가|는|를|한테|에게|네)(?![가-힣])")
"""A given name that ends in a consonant takes a syllable before its particle: 민석이가."""
_KOREAN_INSTITUTION = re.compile(
    r"[가-힣]{2,}(?:대학교|초등학교|중학교|고등학교|병원|은행|호텔|공항|미술관|박물관|백화점|아파트)"
    r"|[가-힣]{1,6}(?<![지구영통번무권전면방])(?<!지하철)역"
)

_TITLE_KO = "씨|과장|부장|대리|차장|팀장|사장|대표|이사|교수|박사|원장|선생|감독|코치"
_TITLE_BEFORE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof)\.?\s\Z")
_PLACE_BEFORE = re.compile(
    r"\b(?:in|near|around|(?:mov(?:e|ed|es|ing)|relocat(?:e|ed|es|ing)|fl(?:y|ies|ew|ying)|travel\w*"
    r"|dr(?:ive|ove|iving)|trip|back|train|bus|flight)(?: \w+)? to)\s\Z",
    re.IGNORECASE,
)


def identifiers(text: str) -> list[str]:
    """Words of letters and digits, such as PLUM-7; figures with a unit are not among them."""
    return [w for w in _IDENTIFIER.findall(text) if not _PLAIN_UNIT.fullmatch(w)]


def english_names(text: str) -> list[str]:
    """Words that are written like proper names, first words of sentences only if known as such."""
    found: list[str] = []
    for match in _CAPITAL_WORD.finditer(text):
        word = _bare(match.group())
        lower = word.lower()
        if lower in word_set("not_names") or len(word) < 2:
            continue
        if _INITIAL.search(text, max(0, match.start() - 6), match.start()) and not (
            lower in word_set("names_en") or _looks_named(text, match.end(), lower)
        ):
            continue
        found.append(word)
    return found


def korean_names(text: str) -> list[str]:
    """Words that are people or places by their form: 김민준, 박 과장, 한빛병원, 부산."""
    titled = (m.group(1) for m in _KOREAN_TITLED.finditer(text))
    found = [
        name
        for name in titled
        # 이사 is a title and a removal: 사용자는 이사를 한다.
        if not {name, _KOREAN_PARTICLE.sub("", name)} & word_set("not_names")
    ]
    found += [name for name in _KOREAN_CALLED.findall(text) if name not in word_set("not_names")]
    for match in _KOREAN_WORD.finditer(text):
        word = match.group()
        stem = _KOREAN_PARTICLE.sub("", word)
        if stem in word_set("not_names") or word in word_set("not_names"):
            continue
        if stem.endswith("지") and text[match.end() : match.end() + 2].lstrip()[:1] in ("않", "못"):
            continue  # a verb that is denied: 정하지 않았다
        given = stem in word_set("names_ko")
        if given or _KOREAN_PERSON.fullmatch(stem) or _KOREAN_INSTITUTION.fullmatch(stem):
            found.append(stem)
        else:
            found += [place for place in _korean_places() if word.startswith(place)][:1]
    return found


def is_korean_given_name(word: str) -> bool:
    """Whether a word is formed like a given name, alone or behind a family name: 민지, 김민지."""
    return bool(_KOREAN_GIVEN.fullmatch(word) or _KOREAN_PERSON.fullmatch(word))


def latin_words(text: str) -> list[str]:
    """Words in Latin letters, which stand out in Korean text."""
    return [_bare(word) for word in _LATIN_WORD.findall(text)]


def korean_stem(word: str) -> str:
    """A Korean word without its particle or a common ending, as far as these can be told."""
    stem = _KOREAN_ENDING.sub("", word) or word
    return _KOREAN_PARTICLE.sub("", stem) if len(stem) > 2 else stem


def person_or_place(name: str, line: str) -> str:
    """Which of the two a name of a line is, "" if that cannot be told.

    A place may be called like a person and the other way round: then the line decides.
    """
    korean = re.escape(name) if re.search("[가-힣]", name) else ""
    if korean and re.search(rf"{korean}(?:이?네)?\s?(?:{_TITLE_KO})", line):
        return "person"
    if korean:
        return "place" if name in _known("places_ko", 0, 3) else ""
    at = line.find(name)
    if _TITLE_BEFORE.search(line, 0, max(at, 0)):
        return "person"
    if _PLACE_BEFORE.search(line, 0, max(at, 0)):
        return "place"
    word = name.split()[0].casefold()
    person, place = word in _known("names_en", 0, 1), word in _known("names_en", 1, 3)
    return "" if person == place else "person" if person else "place"


@cache
def _known(name: str, start: int, stop: int) -> frozenset[str]:
    """The words of some lines of a file."""
    return frozenset(word for group in word_groups(name)[start:stop] for word in group)


@cache
def _korean_places() -> tuple[str, ...]:
    return tuple(sorted(word_set("places_ko"), key=len, reverse=True))


def _bare(word: str) -> str:
    return re.sub(r"['’](?:s|re|ll|ve|d|m)?$", "", word.rstrip("-&.'’"))


def _looks_named(text: str, end: int, lower: str) -> bool:
    """Whether a sentence goes on after its first word as after a name."""
    plain = lower.endswith(("ing", "ion", "ions", "ment", "ity", "ed", "ly", "ness", "ers", "ies"))
    return not plain and bool(_NAME_VERB.match(text, end)) and not lower.endswith("s")
