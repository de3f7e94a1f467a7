"""A question that is larger than the prompt: its head and tail stay word for word. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retrieval.types import CountTokens

LEAST_ROOM_TOKENS = 32
"""With less beside the system text, no beginning and end of a question says anything."""
LONG_SHARE = 4
"""A question of more than this part of a prompt is long."""


@dataclass(frozen=True, slots=True)
class ShortenedQuestion:
    """`text` is head, mark and tail; `left_out_tokens` counts what only the document holds."""

    text: str
    left_out_tokens: int


def is_long(question_tokens: int, *, usual_system_tokens: int, limit_tokens: int) -> bool:
    """Whether a question that does not fit is itself what is long; otherwise a system text is,
    and no shorter question would help."""
    room_tokens = limit_tokens - usual_system_tokens
    return question_tokens > min(room_tokens, limit_tokens // LONG_SHARE)


def shorten_question(
    question: str, room_tokens: int, *, mark: Callable[[int], str], count: CountTokens
) -> ShortenedQuestion:
    """Keep the beginning and the end within `room_tokens`, each cut at a line or a word.

    `mark` makes the text between them from the number of tokens left out. Instructions stand in
    the first lines of a long message or in the last ones, hence both.
    """
    side = max((room_tokens - count(mark(count(question)))) // 2, 1)
    head_end = _fit(len(question), lambda n: count(question[:n]) <= side)
    tail_start = len(question) - _fit(
        len(question) - head_end, lambda n: count(question[len(question) - n :]) <= side
    )
    head = question[: _before(question, head_end)]
    tail = question[_after(question, tail_start) :]
    left_out = max(count(question) - count(head) - count(tail), 0)
    return ShortenedQuestion(f"{head}{mark(left_out)}{tail}", left_out)


def _fit(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, by halving."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _before(text: str, end: int) -> int:
    """The last line or word end at or before `end`, unless that gives up more than half."""
    cut = max(text.rfind("\n", end // 2, end), text.rfind(" ", end // 2, end))
    return cut + 1 if cut > 0 else end


def _after(text: str, start: int) -> int:
    """The first line or word start at or after `start`, unless that gives up more than half."""
    limit = start + (len(text) - start) // 2
    cuts = [cut for cut in (text.find("\n", start, limit), text.find(" ", start, limit)) if cut > 0]
    return min(cuts) + 1 if cuts else start
