"""What to search for: a question that leans on earlier turns borrows their words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chatbot.messages import Turn
from chatbot.proper_names import korean_names
from chatbot.query_parts import names_nothing, own_words, parted
from chatbot.words import patterns
from retrieval.words import content_terms, lexical_terms

# Words that point at something said before. A question that holds one, or that is too short to
# stand alone, is completed with the turns before it; any other question is searched as it is.
_POINTING_EN = re.compile(
    r"\b(this|that|these|those|(?<!are )(?<!is )(?<!were )(?<!was )(?<!be )there|then|ones?"
    r"|the (first|second|third|fourth|last|next) (option|choice|point|item|part|way|step|method)"
    r"|former|latter|same|above|previous|earlier|again|instead|also|another|others?"
    r"|(?P<person>it|its|they|them|their|theirs|he|him|his|she|her|hers))\b",
    re.IGNORECASE,
)
_OPENING_EN = re.compile(
    r"^\s*(and|but|so|or|what about|how about|why not|which one|yes|no|ok(ay)?|sure|go on|continue"
    r"|more|please do)\b",
    re.IGNORECASE,
)
_POINTING_KO = patterns("pointing_ko")
_OPENING_KO = re.compile(
    r"^\s*(네|예|응|아니|그래|좋아|계속|더|그리고|하지만|그래서|왜|또|그)(\s|요|[.,?!]|$)"
)
_SAYING = (
    r"recommend|suggest|advise|say|tell|propose|explain|give|write|mention|describe|list|answer"
    r"|show|provide|come up"
)
_SAID = (
    r"recommended|suggested|advised|said|told|proposed|explained|gave|wrote|mentioned|described"
    r"|listed|answered|showed|provided|came up"
)
_ASKS_FOR_REPLY_EN = re.compile(
    rf"\b(did|had|have)\s+you\s+(\w+ly\s+)?({_SAYING}|{_SAID})\b"
    rf"|\byou\s+(\w+ly\s+|just\s+|once\s+|had\s+|have\s+)?({_SAID})\b"
    r"|\byour\s+(\w+er\s+|last\s+|previous\s+|first\s+)?"
    r"(advice|suggestions?|recommendations?|answers?|reply|replies|explanations?|response)\b",
    re.IGNORECASE,
)
_ASKS_FOR_REPLY_KO = re.compile(
    r"(추천|제안|조언|설명|권|답)(을\s*)?(해\s*)?(줬|주었|주셨|준\s|했었|했던|하셨|했지|했나|했어)"
    r"|(알려|말해|가르쳐|써|만들어)\s*(줬|주었|주셨|준\s)"
    r"|(네|너의|당신의|챗봇의)\s*(답|대답|제안|추천|조언|설명)"
)
_OWN_WORDS_KO = re.compile(r"(내가|제가|나는|저는|우리가)\s")
_FEW_TERMS = 3
_NAMED_BEFORE_PERSON, _NAMED_BEFORE_POINTER = 2, 3
"""With so many words of content before it, a pointing word means something in the question."""
_MAX_BORROWED_TERMS = 24
_LEAST_SOURCES, _SOURCES = 6, 8
"""Questions that are looked back at for the subject: it is often named some questions before, and
questions between that could stand alone are mostly about it as well."""
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*")


def leans_on_earlier_turns(question: str) -> bool:
    """Whether a question can only be understood together with the turns before it.

    Thanks, and words that announce another subject, are no part of the question, and one that
    comes after them needs fewer words to stand alone.
    """
    opening, asked = parted(question)
    few = names_nothing(asked, opening) or (not opening and _has_few_terms(asked))
    goes_on = _OPENING_EN.search(asked) or _OPENING_KO.search(asked)
    short = len(lexical_terms(asked)) <= 25
    pointing = _points_back(asked) or _POINTING_KO.search(asked)
    return bool(few or goes_on or (pointing and short))


def _has_few_terms(question: str) -> bool:
    return len(content_terms(question)) < _FEW_TERMS and not _NAME.search(question[1:])


def is_merely_short(question: str) -> bool:
    """Whether nothing but its few words makes a question lean on earlier turns."""
    _, asked = parted(question)
    if _OPENING_EN.search(asked) or _OPENING_KO.search(asked):
        return False
    return not (_POINTING_EN.search(asked) or _POINTING_KO.search(asked) or not own_words(asked))


def _points_back(question: str) -> bool:
    found = _POINTING_EN.search(question)
    if found is None:
        return False
    needed = _NAMED_BEFORE_PERSON if found["person"] else _NAMED_BEFORE_POINTER
    before = question[: found.start()]
    return len(content_terms(before)) < needed and not _NAME.search(before[1:])


def asks_for_reply(question: str) -> bool:
    """Whether a question asks for what the assistant said before, not for the user's own words."""
    if _ASKS_FOR_REPLY_EN.search(question):
        return True
    return bool(_ASKS_FOR_REPLY_KO.search(question) and not _OWN_WORDS_KO.search(question))


def search_query(question: str, turns: Sequence[Turn]) -> str:
    """The question, completed with words of the turns before it if it leans on them.

    The words of the last questions are borrowed, back to the one that named the subject, and
    names from the last reply; a question that stands alone comes back unchanged.
    """
    if not turns or not leans_on_earlier_turns(question):
        return question
    borrowed = _borrowed(question, turns)
    return " ".join([question, *borrowed]) if borrowed else question


def _borrowed(question: str, turns: Sequence[Turn]) -> list[str]:
    """Words that the question lacks, from the newest source on."""
    known = content_terms(question)
    words: list[str] = []
    reply = turns[-1].reply[:400]
    first_names = [*_NAME.findall(reply), *korean_names(reply)]
    for source in [*_sources(turns), " ".join(first_names)]:
        for word in re.findall(r"\w[\w'’-]*", source):
            terms = content_terms(word)
            if terms and not terms <= known and len(words) < _MAX_BORROWED_TERMS:
                known |= terms
                words.append(word)
    return words


def _sources(turns: Sequence[Turn]) -> list[str]:
    """The last question, and those before it back to one that stands alone, newest first."""
    said = [m.content for turn in turns[-_SOURCES:] for m in turn.user][-_SOURCES:]
    chosen: list[str] = []
    for text in reversed(said):
        chosen.append(text)
        if len(chosen) >= _LEAST_SOURCES and not leans_on_earlier_turns(text):
            break
    return chosen
