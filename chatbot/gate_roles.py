"""Whether a summary says who did what to whom as its source does. Knows texts only.

Compared are pairs around the same verb: the source has "Ana lent Bruno", and only that, the summary
"Bruno lent Ana". Other ways to say a thing are free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from retrieval.sentences import sentences

Deed = tuple[str, str, str]
"""Who, the verb, whom."""

_USER = "user"
_VERBS = {
    form: verb
    for verb, forms in {
        "tell": "told tells tell", "ask": "asked asks ask", "give": "gave gives given give",
        "lend": "lent lends lend", "send": "sent sends send", "invite": "invited invites invite",
        "pay": "paid pays pay", "sell": "sold sells sell", "teach": "taught teaches teach",
        "help": "helped helps help", "call": "called calls call", "show": "showed shows show",
        "owe": "owed owes owe", "promise": "promised promises promise", "offer": "offered offers",
        "warn": "warned warns warn", "visit": "visited visits visit", "hire": "hired hires hire",
        "fire": "fired fires fire", "beat": "beats beat", "follow": "followed follows follow",
        "introduce": "introduced introduces", "email": "emailed emails email",
        "replace": "replaced replaces replace", "blame": "blamed blames blame",
        "thank": "thanked thanks thank", "pick": "picked picks", "bring": "brought brings bring",
    }.items()
    for form in forms.split()
}  # fmt: skip
_WHO = r"(?:I|me|[Tt]he user(?:['’]s [a-z]+)?|(?:[Mm]y|[Hh]is|[Hh]er|[Tt]heir) [a-z]+|[A-Z][a-z]+)"
_DEED = re.compile(
    rf"\b({_WHO})\s(?:has |had |have |also |then |now |already )?"
    rf"({'|'.join(sorted(_VERBS, key=len, reverse=True))})\s(?:to )?({_WHO})\b"
)
_OWNER = re.compile(r"^(?:the user['’]s|my|his|her|their) ", re.IGNORECASE)
_DEED_KO = re.compile(
    r"(?<![가-힣])([가-힣]{1,5}?)(?:이가|이는|[이가은는])\s(?:[가-힣]+\s)?"
    r"([가-힣]{1,5}?)(?:이)?(?:\s?씨)?(?:에게서|에게|한테서|한테|께)\s(?:[가-힣]+\s){0,3}?([가-힣]{2,})"
)
_MYSELF_KO = frozenset(("저", "제", "나", "내", "사용자"))
_TITLE_KO = re.compile(r"\s?씨$")
_OWN_MATTER = re.compile(
    r"\b[Tt]he assistant (?:lives|works (?:at|as|in|for)|is (?:allergic|vegetarian|vegan|married)"
    r"|prefers|likes|loves|hates|dislikes|owns|has (?:an?|two|three) \w+|was born"
    r"|plans (?:an?|to|their|his|her))"
    r"|(?:도우미|어시스턴트|assistant)(?:는|가|의)\s(?:\S+\s){0,4}?"
    r"(?:살고|살며|산다|일하|알레르기|좋아하|싫어하|이사|결혼|채식)"
)


def swapped_roles(text: str, source: str) -> Iterator[str]:
    """Pairs of people around a verb that the source has the other way round, and only so."""
    known = set(_deeds(source))
    for who, verb, whom in dict.fromkeys(_deeds(text)):
        if (whom, verb, who) in known and (who, verb, whom) not in known:
            yield f"{who}, {whom}"


def of_the_assistant(text: str, replies: str) -> Iterator[str]:
    """What a summary gives out as the assistant's own affairs, which only its replies may be."""
    for found in _OWN_MATTER.finditer(text):
        if not re.search(r"\b(?:I['’]m|I am|I live|I prefer|I like)\b|저는|제가", replies):
            yield found.group()


def _deeds(text: str) -> Iterator[Deed]:
    for sentence in sentences(text):
        for who, verb, whom in _DEED.findall(sentence):
            yield _person(who), _VERBS[verb], _person(whom)
        for who, whom, verb in _DEED_KO.findall(sentence):
            yield _person_ko(who), verb[:2], _person_ko(whom)


def _person(words: str) -> str:
    if words.lower() in ("i", "me", "the user"):
        return _USER
    return _OWNER.sub("", words).casefold()


def _person_ko(word: str) -> str:
    bare = _TITLE_KO.sub("", word)
    return _USER if bare in _MYSELF_KO else bare.removesuffix("이") if len(bare) > 2 else bare
