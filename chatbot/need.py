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
"""An old excerpt that holds so much of a question's words, or is so near in meaning, is meant."""
OWN_COVERAGE, OWN_COSINE = 0.25, 0.35
"""The same for a question about the user's own affairs, whatever is in sight: the turns in sight
may hold no more than the same question."""
FAINT_COSINE = 0.25
"""Nearer than turns in sight by the lead below, so little is enough for such a question: other
words for the same thing, such as wage and salary, reach no more in a long excerpt."""
LONE_COVERAGE, UNSEEN_COVERAGE = 0.4, 0.1
"""The same where the turns in sight hold next to nothing of it: the one word that says what is
asked about may be the only one that was said."""
LEAD_COVERAGE, LEAD_COSINE = 0.15, 0.08
"""By how much old turns must be better than those in sight."""
STATED_COVERAGE, STATED_COSINE, STATED_LEAD_COSINE = 0.75, 0.65, 0.25
"""The same for what is no question for a fact: a statement, or a request to do something."""
WEAK_COVERAGE, WEAK_COSINE = 0.25, 0.3
"""Below both, what is found has a word or two in common with the message, and no more."""
LONG_TERMS, LONG_QUESTION_TERMS, LONG_OWN_QUESTION_TERMS = 60, 30, 45
"""A longer message, or question, brings what it is about with it."""

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
    r"[?？]|^\s*(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did"
    r"|tell me|name|list)\b|(?:까|나요|은가|는가|니|죠|지)\s*[.]?\s*$",
    re.IGNORECASE,
)
_FOR_A_FACT = re.compile(
    r"\b(?:who|whom|whose|what|when|where|which|how (?:many|much|long|old|often|far|tall|big|late"
    r"|early))\b|^\W*(?:(?:and|but|so|hmm|ok),?\s+)*(?:is|are|was|were|do|does|did|has|have|had"
    r"|tell me|name|list)\b"
    r"|뭐|뭘|무엇|무슨|언제|어디|누구|누가|얼마|몇|어느|어떤|이름|있[나니어]|인가|맞[나지아]",
    re.IGNORECASE,
)
_FOR_A_DEED = re.compile(
    r"\b(?:can|could|would|will) you\b|\bhelp\b|\bplease\b|\bshow me\b|\bexplain\b|\bwrite\b"
    r"|\bwhat (?:are|is|were) (?:some|the best|good|a good)\b|\b(?:tips|advice|suggest\w*)\b"
    r"|\b(?:how|what|which|when|where)? ?(?:can|could|should|may|shall|would) (?:I|we|you)\b"
    r"|\bhow (?:do|does|to)\b|\bdo (?:I|we) (?:need|have) to\b|\bwhat if\b|\bwhat about\b"
    r"|\bdo you (?:think|have|like|want|know how)\b|\bare you\b|\bwhat do you\b"
    r"|방법|어떻게|어떨까|추천|써\s*줘|만들어|설명|도와|할까",
    re.IGNORECASE,
)
_OWN_EN = re.compile(r"\b(?:my|mine|our|ours|I|me|we|us)\b")
_OWN_KO = re.compile(r"(?:^|\s)(?:내|제|나의|저의|우리|저희|내가|제가|나는|저는|난|전)(?:\s|$)")
_SENTENCE = re.compile(r"[^.!?？\n;]+(?:\.(?=\S)[^.!?？\n;]+)*[?？]?")
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
    if _QUESTION.search(message) and asks_back(message):
        return "much"
    if len(lexical_terms(message)) > LONG_TERMS or not content_terms(message):
        return "none"
    asked = question_for_a_fact(message)
    if asked is None:
        stated = not _SMALL_TALK.search(message) and len(content_terms(message)) > 1
        return "some" if stated and _leads_by_far(match) else "none"
    if speaks_of_own(asked):
        if match.covered >= OWN_COVERAGE or match.cosine >= OWN_COSINE:
            return "much"
        lead = match.cosine_in_sight + LEAD_COSINE
        return "some" if match.cosine >= max(FAINT_COSINE, lead) else "none"
    by_words = match.covered >= max(STRONG_COVERAGE, match.covered_in_sight + LEAD_COVERAGE)
    by_words |= match.covered >= LONE_COVERAGE and match.covered_in_sight <= UNSEEN_COVERAGE
    by_meaning = match.cosine >= max(STRONG_COSINE, match.cosine_in_sight + LEAD_COSINE)
    return "some" if by_words or by_meaning else "none"


def _leads_by_far(match: Match) -> bool:
    by_words = match.covered >= max(STATED_COVERAGE, match.covered_in_sight + LEAD_COVERAGE)
    lead = match.cosine_in_sight + STATED_LEAD_COSINE
    return by_words or match.cosine >= max(STATED_COSINE, lead)


def question_for_a_fact(message: str) -> str | None:
    """The last sentence that asks who, what, when, where or whether; None if there is none, or
    if it asks for advice or for something to be done."""
    for sentence in reversed(_SENTENCE.findall(message)):
        if not _QUESTION.search(sentence.strip()) or not _FOR_A_FACT.search(sentence):
            continue
        limit = LONG_OWN_QUESTION_TERMS if speaks_of_own(sentence) else LONG_QUESTION_TERMS
        long = len(lexical_terms(sentence)) > limit
        return None if long or _FOR_A_DEED.search(sentence) else sentence.strip()
    return None


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


def speaks_of_own(text: str) -> bool:
    """Whether a text is about the user's own affairs."""
    return bool(_OWN_EN.search(text) or _OWN_KO.search(text))
