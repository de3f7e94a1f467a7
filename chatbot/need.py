"""How much of the older turns a message needs. Pure; knows no budget and no index.

Recalled text is read anew at every turn and takes the place of what is read already, so a turn
that goes on with what is in sight gets none of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from chatbot.query import asks_for_reply
from retrieval.words import content_terms, lexical_terms

Need = Literal["none", "some", "much"]

STRONG_COVERAGE, STRONG_COSINE = 0.6, 0.5
"""An old excerpt that holds so much of the words, or is so near in meaning, is what is meant."""
OWN_COVERAGE, OWN_COSINE = 0.35, 0.35
"""The same for a question about the user's own affairs."""
WEAK_COVERAGE, WEAK_COSINE = 0.25, 0.3
"""Below both, what is found has a word or two in common with the message, and no more."""
LONG_TERMS, FEW_TERMS = 60, 2
"""A longer message brings what it is about with it; a shorter one is about nothing."""

_SAID = r"said|told|mentioned|asked|promised"
_ASKS_BACK_EN = re.compile(
    rf"""\b(?:did|had|have|has|was|were)\ (?:n[o']t\ )?(?:I|we|my|our)\b
    |\b(?:I|we|I['’]ve|we['’]ve)\ (?:have\ |had\ )?(?:\w+ly\ |just\ |once\ |already\ )?(?:{_SAID})\b
    |\bhave\ (?:I|we)\b|\bdo\ you\ (?:still\ )?(?:remember|recall|know\ (?:my|our|what\ I))\b
    |\bremind\ (?:me|us)\b|\brecap\b|\b(?:last|first)\ time\b|\bso\ far\b
    |\b(?:did|had)\ you\b|\bwe\ (?:talked|spoke|discussed|were\ talking)\b
    |\b(?:earlier|previously)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_BACK_KO = re.compile(
    r"기억(?:나|해|하|\s*나)|아까|지난번|저번|이전에|예전에|앞에서|처음에"
    r"|(?:내가|제가|나는|저는|우리가|우리는|네가|당신이)\s.{0,60}"
    r"(?:했|말했|였|었|았|랬|줬|냐|더라|던|겠다고|다고)"
    r"|(?:였|했|었|았)(?:더라|지요?\??$|죠\??$|나요\??$|었나)|(?:뭐|언제|어디|누구|얼마|몇)\S{0,4}(?:였|었|랬)"
)
_QUESTION = re.compile(
    r"\?\s*$|[?]|^\s*(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did"
    r"|tell\ me|name|list)\b|(?:까|나요|은가|는가|니|죠|지)\s*[.?]?\s*$",
    re.IGNORECASE | re.VERBOSE,
)
_OWN_EN = re.compile(r"\b(?:my|mine|our|ours|I|me|we|us)\b")
_OWN_KO = re.compile(r"(?:^|\s)(?:내|제|나의|저의|우리|저희|내가|제가|나는|저는|난|전)(?:\s|$)")
_HOW_TO = re.compile(
    r"\b(?:how|can|could|should|may|shall) (?:do |can |should )?(?:I|we)\b",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"^\W*(?:thanks?|thank you|great|cool|nice|perfect|awesome|wow|ok(?:ay)?|sure|hello|hi|hey"
    r"|good (?:morning|afternoon|evening|night)|bye|goodbye|see you|got it|that(?:['’]s| is| was)?"
    r" (?:really |very |so )?(?:helps?|helpful|great|good|nice)|yes|yeah|no|lol|haha"
    r"|안녕|감사|고마|고맙|좋아|좋네|알겠|그래|네|응|아니|ㅋㅋ|ㅎㅎ|수고)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Match:
    """How well the best excerpt of old turns suits a message, and the best of turns in sight.

    Coverages are shares of the message's words by weight, in [0, 1]; cosines are 0 where there
    are no vectors.
    """

    covered: float = 0.0
    covered_in_sight: float = 0.0
    cosine: float = 0.0
    cosine_in_sight: float = 0.0


def need(message: str, match: Match) -> Need:
    """`much` when it asks for what was said before; `some` when old turns hold what it is about
    better than those in sight; else `none`."""
    question = _QUESTION.search(message) is not None
    if question and asks_back(message):
        return "much"
    if len(lexical_terms(message)) > LONG_TERMS or len(content_terms(message)) < FEW_TERMS:
        return "none"
    if not question and _SMALL_TALK.search(message):
        return "none"
    own = question and speaks_of_own(message)
    least, near = (OWN_COVERAGE, OWN_COSINE) if own else (STRONG_COVERAGE, STRONG_COSINE)
    by_words = match.covered >= least and match.covered > match.covered_in_sight
    by_meaning = question and match.cosine >= near and match.cosine > match.cosine_in_sight
    if not (by_words or by_meaning):
        return "none"
    return "much" if own else "some"


def is_weak(message: str, match: Match) -> bool:
    """Whether the old turns hold next to nothing of what a message is about."""
    if asks_back(message) or speaks_of_own(message):
        return False
    return match.covered < WEAK_COVERAGE and match.cosine < WEAK_COSINE


def asks_back(message: str) -> bool:
    """Whether a message asks for what was said or done before."""
    return bool(
        asks_for_reply(message) or _ASKS_BACK_EN.search(message) or _ASKS_BACK_KO.search(message)
    )


def speaks_of_own(message: str) -> bool:
    """Whether a message is about the user's own affairs, other than how to do something."""
    if _OWN_KO.search(message):
        return True
    return bool(_OWN_EN.search(message)) and not _HOW_TO.search(message)
