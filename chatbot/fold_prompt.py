"""The texts of a summary call, and cutting what comes back. Pure; knows no model and no gate."""

from __future__ import annotations

import prompts
from retrieval.sentences import split_sentences
from retrieval.types import CountTokens

WORDS_PER_TOKEN = {"en": 0.6, "ko": 0.35, "other": 0.4}
_END_MARKS = tuple(".!?…。！？")


def summarise_messages(
    previous: str, text: str, *, language: str, cap_tokens: int, strict: bool = False
) -> tuple[str, str]:
    """System and user text of a summary call on a transcript; an earlier summary is merged in."""
    share = WORDS_PER_TOKEN.get(language, WORDS_PER_TOKEN["other"])
    name = "summarise_strict" if strict else "summarise"
    if language not in prompts.LANGUAGES:
        name += "_own"  # the texts are English, but the summary is to be in the chat's language
    system = prompts.load(
        name,
        language,
        max_words=max(12, int(cap_tokens * share)),
    )
    if previous.strip():
        user = prompts.load(
            "summarise_merge_input", language, previous=previous.strip(), transcript=text
        )
    else:
        user = prompts.load("summarise_input", language, transcript=text)
    return system, user


def trim_to_cap(text: str, cap_tokens: int, count_tokens: CountTokens) -> str:
    """The longest run of whole sentences from the start that fits; "" if not even one does.

    A sentence counts as whole only if it has an end mark.
    """
    for start, end in reversed(split_sentences(text)):
        whole = text[start:end].rstrip("\"'”’)*").endswith(_END_MARKS)
        if whole and count_tokens(text[:end]) <= cap_tokens:
            return text[:end]
    return ""
