"""What to search for: a question that leans on earlier turns borrows their words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chatbot.messages import Turn
from retrieval.words import content_terms, lexical_terms

# Words that point at something said before. A question that holds one, or that is too short to
# stand alone, is completed with the turns before it; any other question is searched as it is.
_POINTING_EN = re.compile(
    r"\b(it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|then"
    r"|one|ones|former|latter|same|above|previous|earlier|again|instead|also|another|other|others)\b",
    re.IGNORECASE,
)
_OPENING_EN = re.compile(
    r"^\s*(and|but|so|or|what about|how about|why not|which one|yes|no|ok(ay)?|sure|go on|continue"
    r"|more|please do)\b",
    re.IGNORECASE,
)
_POINTING_KO = re.compile(
    r"(그것|그거|그게|그건|그걸|그럼|그러면|그런|그렇|거기|그곳|그때|그 |이것|이거|이게|이건|이걸|"
    r"저것|저거|앞의|앞서|위의|아까|방금|둘 다|첫째|둘째|셋째|첫 번째|두 번째|세 번째|같은|"
    r"다른|또 )"
)
_OPENING_KO = re.compile(
    r"^\s*(네|예|응|아니|그래|좋아|계속|더|그리고|하지만|그래서|왜|또|그)(\s|요|[.,?!]|$)"
)
_FEW_TERMS = 3
_MAX_BORROWED_TERMS = 24
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*")


def leans_on_earlier_turns(question: str) -> bool:
    """Whether a question can only be understood together with the turns before it."""
    few = len(content_terms(question)) < _FEW_TERMS and not _NAME.search(question[1:])
    pointing = _POINTING_EN.search(question) or _POINTING_KO.search(question)
    opening = _OPENING_EN.search(question) or _OPENING_KO.search(question)
    short = len(lexical_terms(question)) <= 25
    return bool(few or opening or (pointing and short))


def search_query(question: str, turns: Sequence[Turn]) -> str:
    """The question, completed with words of the turns before it if it leans on them.

    The previous question is borrowed whole, and of the turns before those words which the
    question lacks; a question that stands alone comes back unchanged.
    """
    if not turns or not leans_on_earlier_turns(question):
        return question
    borrowed = _borrowed(question, turns)
    return " ".join([question, *borrowed]) if borrowed else question


def _borrowed(question: str, turns: Sequence[Turn]) -> list[str]:
    """Words of the last questions that stand alone, newest first, and names of the last reply."""
    known = content_terms(question)
    words: list[str] = []
    sources = [turns[-1].question]
    if leans_on_earlier_turns(turns[-1].question):
        sources += [turn.question for turn in reversed(turns[-4:-1])]
    first_names = _NAME.findall(turns[-1].reply[:400])
    for source in [*sources, " ".join(first_names)]:
        for word in re.findall(r"\w[\w'’-]*", source):
            terms = content_terms(word)
            if terms and not terms <= known and len(words) < _MAX_BORROWED_TERMS:
                known |= terms
                words.append(word)
    return words
