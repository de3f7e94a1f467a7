"""Whether a summary says of people what its source says of them: kinship, what they are or do.

Knows texts only. Refused is only what the source says in the same way of somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chatbot.gate_binding import said
from chatbot.proper_names import korean_stem
from chatbot.subjects import subject
from retrieval.words import content_terms

_KIN = {
    word: kin
    for kin, words in {
        "mother": "mother mom mum", "father": "father dad", "brother": "brother",
        "sister": "sister", "aunt": "aunt", "uncle": "uncle", "cousin": "cousin",
        "niece": "niece", "nephew": "nephew", "spouse": "wife husband spouse partner",
        "son": "son", "daughter": "daughter", "grandmother": "grandmother grandma",
        "grandfather": "grandfather grandpa",
    }.items()
    for word in words.split()
}  # fmt: skip
_KIN_WORD = "|".join(sorted(_KIN, key=len, reverse=True))
_KIN_NAME = re.compile(
    rf"(?<!['’]s )\b(?i:({_KIN_WORD}))(?:,| is| is called| named)? ([A-Z][a-z]+)\b"
)
_NAME_KIN = re.compile(rf"\b([A-Z][a-z]+), (?:my|his|her|their|the user['’]s) ({_KIN_WORD})\b")
_OF_THE_USER = re.compile(r"\b([Tt]he user|[Uu]ser)['’]s\b")
_KIN_KO = re.compile(
    r"(?<![가-힣의])(어머니|아버지|엄마|아빠|남편|아내|동생|여동생|남동생|오빠|언니|누나|형|사촌|이모|고모"
    r"|삼촌|아들|딸|할머니|할아버지|조카)(?:인| 이름은| 이름이)? "
    r"(?!이름|생[일신]|직장|회사|학교|나이|선물|결혼|친구|병원|때문|덕분|생각|건강|전화|알레르기|집[에은이])([가-힣]{2,6})(?![가-힣])"
)
_KIN_NAMES_KO = {
    "엄마": "어머니", "아빠": "아버지", "여동생": "동생", "남동생": "동생", "오빠": "형",
    "남편": "배우자", "아내": "배우자",
}  # fmt: skip
_IS = re.compile(
    r"\b([A-Z][a-z]+) (?:is|was) (?:(?:a|an|the|also|very|now|both|strictly) )*([a-z]{4,})\b"
)
_TOPIC_KO = re.compile(r"(?<![가-힣])([가-힣]{2,4})(?:은|는|이|가)\s")
_CLAUSE_KO = re.compile(r"(?<=[고며])\s|(?<=지만)\s|(?<=는데)\s")
_ALIKE = re.compile(
    r"\b(?:too|also|both|same|as well|likewise|neither|so (?:is|was|does|do)|we|they)\b"
    r"|[가-힣]도\s|같이|함께|역시|모두|둘 다|거기|똑같",
    re.IGNORECASE,
)


def other_kin(text: str, source: str) -> Iterator[str]:
    """ "Cousin Tobias" where the source only has "brother Tobias"."""
    known = set(kin_names(source))
    for kin, name in dict.fromkeys(kin_names(text)):
        own = {k for k, n in known if n == name}
        if own and kin not in own and not _together(source, name, kin):
            yield f"{kin} {name}"


def kin_names(text: str) -> Iterator[tuple[str, str]]:
    """Words of kinship with the name that stands beside them, each under one word."""
    plain = _OF_THE_USER.sub("their", text)
    for word, name in _KIN_NAME.findall(plain):
        yield _KIN[word.lower()], name
    for name, word in _NAME_KIN.findall(plain):
        yield _KIN[word], name
    for word, name in _KIN_KO.findall(text):
        yield _KIN_NAMES_KO.get(word, word), korean_stem(name)


def _together(source: str, name: str, kin: str) -> bool:
    """Whether the source has any word for `kin` in a sentence that has `name`."""
    about = (s.casefold() for s in said(source) if name in s)
    return any(word in s for s in about for word in kin_words(kin))


def kin_words(kin: str) -> list[str]:
    """All words for a kind of kin."""
    return [kin, *(w for w, k in (*_KIN.items(), *_KIN_NAMES_KO.items()) if k == kin)]


def said_of_another(text: str, source: str) -> Iterator[str]:
    """ "Lena is coeliac" where the source has "Tobias is coeliac" and nothing of it on Lena."""
    known = {pair for s in said(source) for pair in _IS.findall(s)}
    for name, quality in dict.fromkeys(_IS.findall(text)):
        others = {n for n, q in known if q == quality} - {name}
        mine = [s for s in said(source) if name in s]
        if mine and others and (name, quality) not in known and not _may_share(mine, quality):
            yield f"{quality}: {name}"


def done_by_another(text: str, source: str) -> Iterator[str]:
    """The same in Korean, by the topic of each clause: 수아는 출장이라 where 민수는 출장이라."""
    if not _TOPIC_KO.search(text):
        return
    named = {name for _, name in kin_names(source)}
    if len(named) < 2:
        return
    for sentence in said(text):
        for clause in _CLAUSE_KO.split(sentence):
            yield from _misplaced(clause, said(source), named)


def _misplaced(clause: str, known: Sequence[str], named: set[str]) -> Iterator[str]:
    topics = [t for t in _TOPIC_KO.findall(clause) if t in named]
    if len(topics) != 1 or any(other in clause for other in named - set(topics)):
        return
    name = topics[0]
    mine = [s for s in known if name in s]
    for word in subject(clause) - {name}:
        holders = [s for s in known if word in s]
        others = [set(_TOPIC_KO.findall(s)) & named - {name} for s in holders]
        if mine and holders and all(others) and not _may_share(mine, word):
            yield f"{word}: {name}"


def _may_share(mine: list[str], word: str) -> bool:
    """Whether sentences on a person hold the word, or say that somebody else's holds for them."""
    stems = content_terms(word)
    return any(_ALIKE.search(s) or word in s.lower() or stems & content_terms(s) for s in mine)
