"""What a message has beside its question, and whether the question names a subject. Pure."""

from __future__ import annotations

import re
from typing import Literal

from chatbot.words import patterns
from retrieval.words import content_terms, hangul_share

Opening = Literal["", "thanks", "news"]

_BETWEEN = re.compile(r"[\s,.!?~…:;–—\-()^ㅎㅋㅠㅜ\U0001F300-\U0001FAFF☺❤\ufe0f]*")
_WORD = re.compile(r"\w+")
_MOSTLY_KOREAN = 0.5
_FRAGMENT_KO = re.compile(
    r"[은는도]\s*(?:요|여|되나요|돼요|될까요|되죠|가능한가요|가능해요|있나요|있어요|있죠)?\s*[?？]|[은는도][요여][\s.!~]*$"
)
"""Ends with the particle of a topic: all that would be said of it is what was said before."""
_ASKS_KO = re.compile(r"언제|얼마|누구|누가|어디|왜|몇|뭐|뭘|무엇|무슨|어때|어떻|어떤|어느")
_BOUND_KO = re.compile(
    r"[가-힣]\s?(?:것|거)(?:들)?(?:도|은|는|이|을|로|으로|만|요)+(?![가-힣])"
    r"|[가-힣]\s(?:것|거|건|걸|게)(?:요|로)?(?![가-힣])"
)
"""As in "the blue one": of what it is one was said before."""
_DEFINITE_EN = re.compile(r"\bthe\b(?!.*\b(?:of|in|on|for|between|from|at)\b)", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][\w'’-]+")


def parted(message: str) -> tuple[Opening, str]:
    """What closes the subject before at the beginning of a message, thanks or the announcement of
    another one, and what follows; the whole message where there is neither, or nothing follows."""
    at = _BETWEEN.match(message).end()  # type: ignore[union-attr]
    opening: Opening = ""
    while found := _opening(message, at):
        kind, end = found
        opening = "news" if "news" in (kind, opening) else kind or opening
        at = _BETWEEN.match(message, end).end()  # type: ignore[union-attr]
    return (opening, message[at:]) if opening and at < len(message) else ("", message)


def _opening(message: str, at: int) -> tuple[Opening, int] | None:
    """The kind of the words that open what begins here, and their end."""
    kinds: tuple[tuple[str, Opening], ...] = (
        ("thanks", "thanks"),
        ("new_subject", "news"),
        ("nods", ""),
    )
    for name, kind in kinds:
        found = patterns(name).match(message, at)
        if found and found.end() > at:
            return kind, found.end()
    return None


def own_words(question: str) -> list[str]:
    """The words of a question that are about something: not those that only ask, or ask for what
    was said in another way."""
    no_subject = patterns("no_own_subject")
    return [word for word in _WORD.findall(question) if not no_subject.fullmatch(word)]


def names_nothing(question: str, opening: Opening) -> bool:
    """Whether a question says too little of its subject to be understood alone. After an
    `opening` one word about something is a subject."""
    own = own_words(question)
    if not own:
        return True
    if hangul_share(question) < _MOSTLY_KOREAN:
        is_few = len(content_terms(question)) < 3 and not _NAME.search(question[1:])
        is_bare = len(_WORD.findall(question)) < 3 or _DEFINITE_EN.search(question)
        return opening == "thanks" and is_few and bool(is_bare)
    if len(own) == 1:
        asks = not opening and _ASKS_KO.search(question)
        return bool(asks or _BOUND_KO.search(question) or _FRAGMENT_KO.search(question))
    pair = len(own) == 2 and not opening and not own[0].endswith("의")
    return pair and bool(_FRAGMENT_KO.search(question))
