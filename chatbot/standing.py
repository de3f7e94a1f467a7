"""What a user wants to hold for later turns too: standing instructions and preferences. Pure.

They matter for questions that share no word with them ("always give version numbers"), so a search
by words alone would never bring them back.
"""

from __future__ import annotations

import re
from typing import Literal

Standing = Literal["instruction", "preference"]

_INSTRUCTION = re.compile(
    r"""(?:^|[.!?\n]\s*|\bplease\s+|\band\s+|,\s*)
        (?:always|never|from\ now\ on|in\ (?:the\ )?future|whenever\ I|every\ time\ I
        |each\ time\ I|any\ time\ I|going\ forward|for\ all\ (?:my\ )?(?:future|further))\b
    |\bwhen(?:ever)?\ I\ ask\b|\bremember\ to\b|\bdon['’]t\ ever\b
    |(?:^|\s)(?:항상|언제나|앞으로는?|이제부터|지금부터|절대로?|매번|반드시|꼭)\s.{0,200}
        (?:세요|줘|해라|하자|마|십시오|바랍니다)
    |(?:물어볼|물을|질문할)\s*때(?:마다|는)?""",
    re.IGNORECASE | re.VERBOSE,
)
_PREFERENCE = re.compile(
    r"""\bI(?:['’]d|\ would)?\ (?:(?:really|much|usually|generally|strongly)\ )?prefer\b
    |\bmy\ preference\b
    |\bI\ (?:really\ )?(?:don['’]t\ |do\ not\ )?(?:like|love|hate|dislike)
        \ (?:it\ when|to|using|when)\b
    |\bI(?:['’]d|\ would)\ rather\b|\b(?:rather\ than|instead\ of)\b.{0,200}\bfor\ me\b
    |\bI\ (?:always|never)\ \w+
    |선호|(?:더|제일|가장)\s*좋아|싫어|(?:게|것이|편이)\s*(?:더\s*)?(?:좋|낫|편하)""",
    re.IGNORECASE | re.VERBOSE,
)


def standing(text: str) -> Standing | None:
    """Whether a user's words set a rule or a preference for later turns."""
    # One space or line end at a time: runs of them would make the patterns try every length.
    text = "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
    if _INSTRUCTION.search(text):
        return "instruction"
    return "preference" if _PREFERENCE.search(text) else None
