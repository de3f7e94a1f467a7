"""Whether a text has the form of a summary at all: not a reply, apology, skeleton or loop.

Knows no source and no figures; each check takes the text and gives a reason or None.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from chatbot.words import patterns
from retrieval.sentences import sentences
from retrieval.words import content_terms

FormCheck = Callable[[str], str | None]


_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|「[^」\n]{1,300}」|‘[^’\n]{1,300}’")
_ROLE = re.compile(
    r"(?:\b(?:User|Assistant|Human|USER|ASSISTANT|SYSTEM|System|Bot)|(?m:^\W*(?:user|assistant"
    r"|human|system|ai|AI|Q|A|시스템))|사용자|도우미|어시스턴트|상담원)\**\s*[:：]"
)
_CONTROL = patterns("control_text")
_APOLOGY = patterns("apology")
_REPLY_START = patterns("reply_start")
_FIRST_PERSON = re.compile(
    r"(?:^|[.!?]\s+|\n\W*)(?:I|I['’](?:m|ve|d|ll)|My|We|We['’](?:re|ve|ll|d)|Our)\s"
    r"|(?:^|[.!?]\s+|\n\W*)(?:저는|제가|저도|저의|저희|나는|난|내가|나도|우리는|우리가|제|내)\s"
)
_ADVICE = patterns("advice")
_IMPERATIVE = patterns("imperative")
_ADDRESSED_QUESTION = patterns("addressed_question")
_PLACEHOLDER = patterns("placeholder")
_NO_VALUE = patterns("no_value")
_LABEL = re.compile(
    r"(?m)^\W*(?:#+ .*|[\w /&'’가-힣]{1,40}:\s*$|[\w /&'’가-힣]{1,40}:(?=\s*[-*]?\s*$))"
)
_INLINE_LABEL = re.compile(r"(?m)^\W*[\w /&'’가-힣]{1,30}:")
_DANGLING = patterns("dangling")
_ABOUT_ITSELF = patterns("about_itself")
_END_MARK = re.compile(r"[.!?…。！？][\"'”’)*\]]*$")
_INNER_END = re.compile(r"[.!?。][\"'”’)]*\s")
_LIST_ITEM = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.)])\s")
_MIN_TERMS = 3


def without_quotes(text: str) -> str:
    """The text with quoted passages taken out: what they say is not the summary's own voice."""
    return _QUOTED.sub(" … ", text)


def empty(text: str) -> str | None:
    """Nothing, or next to nothing, is said."""
    return "empty" if len(content_terms(text)) < _MIN_TERMS else None


def skeleton(text: str) -> str | None:
    """A form whose blanks were never filled."""
    if _PLACEHOLDER.search(text):
        return "placeholder"
    if not _NO_VALUE.search(text) and not _LABEL.search(text):
        return None
    rest = _LABEL.sub(" ", text)
    if _NO_VALUE.search(rest):
        rest = _INLINE_LABEL.sub(" ", "\n".join(s for s in rest.splitlines() if not _void(s)))
    return "skeleton" if len(content_terms(rest)) < 2 * _MIN_TERMS else None


def role_text(text: str) -> str | None:
    """Speakers, headers and control tokens."""
    if found := _CONTROL.search(text):
        return f"control text: {found.group().strip()}"
    found = _ROLE.search(text)
    return f"role text: {found.group().strip()}" if found else None


def apology(text: str) -> str | None:
    """An apology, a refusal, or a request for something to summarise."""
    found = _APOLOGY.search(without_quotes(text))
    return f"apology or request: {found.group().strip()}" if found else None


def reply(text: str) -> str | None:
    """An answer or a contribution to the chat."""
    plain = without_quotes(text)
    if found := _REPLY_START.match(plain):
        return f"starts like a reply: {found.group().strip()}"
    if found := _FIRST_PERSON.search(plain):
        return f"speaks in the first person: {found.group().strip(' .!?')}"
    if found := _IMPERATIVE.search(plain):
        return f"tells what to do: {found.group().strip(' .!:')}"
    found = _ADVICE.search(plain)
    return f"addresses the user: {found.group().strip()}" if found else None


def question(text: str) -> str | None:
    """Ends in a question, or puts one to the user."""
    plain = without_quotes(text).strip()
    return "asks a question" if _ADDRESSED_QUESTION.search(plain) else None


def about_itself(text: str) -> str | None:
    """Speaks of itself instead of what was said."""
    found = _ABOUT_ITSELF.search(without_quotes(text))
    return f"speaks of itself: {found.group().strip()}" if found else None


def cut_off(text: str) -> str | None:
    """Breaks off in the middle of a sentence, whatever the model said about its end."""
    plain = text.strip()
    last = plain.rsplit("\n", 1)[-1]
    if _DANGLING.search(plain):
        return "breaks off"
    if _END_MARK.search(last) or _LIST_ITEM.match(last):
        return None
    # Elsewhere sentences end with a mark, here one does not; or it is too long for a headline.
    marked = len(last.split()) >= 6 and (_INNER_END.search(plain) or last.isascii())
    return "breaks off" if marked else None


def loop(text: str) -> str | None:
    """Says the same again and again."""
    words = text.lower().split()
    if re.search(r"(.{2,12}?)\1{5,}", text) or re.search(r"(\S)\1{9,}", text):
        return "loop of characters"
    grams = Counter(tuple(words[i : i + 4]) for i in range(len(words) - 3))
    if grams and max(grams.values()) >= 3:
        return f"loop: {' '.join(grams.most_common(1)[0][0])}"
    said = Counter(s.strip(" -*•.").lower() for s in sentences(text) if len(s) > 12)
    if said and max(said.values()) >= 2:
        return "the same sentence twice"
    few_words = len(words) >= 30 and len(set(words)) < 0.4 * len(words)
    return "loop of words" if few_words else None


FORM_CHECKS: tuple[FormCheck, ...] = (
    empty, skeleton, role_text, apology, reply, question, about_itself, cut_off, loop,
)  # fmt: skip


def _void(line: str) -> bool:
    """Whether a line says only that there is nothing to say."""
    rest = _NO_VALUE.sub(" ", _INLINE_LABEL.sub(" ", line))
    return bool(_NO_VALUE.search(line)) and len(content_terms(rest)) < _MIN_TERMS
