"""What of a span is put before the model, and how much room there is. Pure; asks no model."""

from __future__ import annotations

from collections.abc import Sequence

import prompts
from chatbot.extractive import extractive_summary
from chatbot.facts import fact_line
from chatbot.fold_plan import Piece, split_span
from chatbot.fold_prompt import summarise_messages
from chatbot.fold_types import FoldTools
from chatbot.language import Language
from chatbot.messages import Fact, Turn

MIN_ROOM_TOKENS = 48
"""With less room for the transcript than this, no model is asked."""
SLACK_TOKENS = 4


def text_cap(tools: FoldTools, facts: Sequence[Fact], kept: str, language: Language) -> int:
    """What facts, headings and the user's own words leave of the cap for the text of a fold."""
    lines = [prompts.load("label_summary", language)]
    if kept:
        lines.append(kept)
    if facts:
        lines.append(prompts.load("label_facts", language))
        lines += [f"- {fact_line(fact, language)}" for fact in facts]
    cap = tools.settings.cap_tokens
    return max(cap // 4, cap - tools.count_tokens("\n".join(lines)) - SLACK_TOKENS)


def room_tokens(
    tools: FoldTools, text: str, language: Language, *, cap_tokens: int, grows: bool
) -> int:
    """Room for the transcript in a summary call, whichever of the two prompts is used.

    `text` is the summary so far; one that `grows` from piece to piece takes room from later ones.
    """
    count = tools.count_tokens
    texts = (
        summarise_messages(text or ".", "", language=language, cap_tokens=cap_tokens, strict=strict)
        for strict in (False, True)
    )
    fixed = max(count(system) + count(user) for system, user in texts)
    growth = max(0, cap_tokens - count(text)) if grows else 0
    window = tools.settings.window_tokens - tools.settings.overhead_tokens
    return window - cap_tokens - fixed - growth - SLACK_TOKENS


def pieces_of(
    tools: FoldTools, turns: Sequence[Turn], language: Language, *, room: int, max_calls: int
) -> list[Piece]:
    """The span in pieces that fit the room, and no more of a long turn than there are calls for."""
    pieces = split_span(turns, room_tokens=room, count_tokens=tools.count_tokens, language=language)
    return (
        pieces
        if len(pieces) <= max_calls
        else _in_whole_turns(tools, turns, language, pieces, room)
    )


def _in_whole_turns(
    tools: FoldTools, turns: Sequence[Turn], language: Language, pieces: Sequence[Piece], room: int
) -> list[Piece]:
    """Where there are not enough calls for the parts of a long turn: its best sentences."""
    whole: list[Piece] = []
    done, partial = 0, False
    for piece in pieces:
        if piece.completes == 0:
            partial = True
            continue
        text = piece.transcript
        if partial:
            text = extractive_summary(
                turns[done : done + piece.completes],
                cap_tokens=room,
                count_tokens=tools.count_tokens,
                language=language,
            )
        if text:
            whole.append(Piece(text, piece.completes, tools.count_tokens(text)))
        done, partial = done + piece.completes, False
    return whole
