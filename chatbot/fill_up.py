"""The room that an allocation has left, filled with shorter excerpts. Calls no model, no index."""

from __future__ import annotations

from dataclasses import dataclass, replace

import prompts
from chatbot.budget import Allocation
from chatbot.excerpts import Excerpt
from chatbot.prompt_pieces import Pieces, PromptRequest
from chatbot.render import Piece, PieceEncoder
from chatbot.shorter_excerpts import LEAST_TOKENS, LONG_NOTE_TOKENS, shortened

MOST = 2
"""Excerpts that are cut down in one prompt; where more have no room, there are many."""


def fill_up(
    request: PromptRequest, pieces: Pieces, allocation: Allocation, encoder: PieceEncoder
) -> tuple[Pieces, Allocation]:
    """The same with the best excerpts that had no room in a shorter form, as far as there is."""
    left = [i for i in range(len(pieces.recalled)) if i not in allocation.recalled]
    for index in [i for i in left if i not in allocation.redundant][:MOST]:
        header = 0 if allocation.recalled else pieces.candidates.recalled_header_tokens
        room = allocation.limit_tokens - allocation.prompt_tokens - header
        if room < LEAST_TOKENS:
            break
        shown = _Shown(request, pieces, allocation)
        piece = _shorter(request.excerpts[index], room, shown, encoder)
        if piece is not None:
            recalled = list(pieces.recalled)
            recalled[index] = piece
            pieces = replace(pieces, recalled=tuple(recalled))
            tokens = allocation.prompt_tokens + header + piece.tokens
            taken = (*allocation.recalled, index)
            allocation = replace(allocation, recalled=taken, prompt_tokens=tokens)
    return pieces, allocation


@dataclass(frozen=True, slots=True)
class _Shown:
    """A prompt as far as it is filled."""

    request: PromptRequest
    pieces: Pieces
    allocation: Allocation

    def holds(self, text: str) -> bool:
        """Whether these words stand in a turn or an excerpt of it."""
        segments = [turn.segment for turn in self.pieces.turns[: self.allocation.turns]]
        segments += [self.pieces.recalled[i].segment for i in self.allocation.recalled]
        return any(text in segment.text for segment in segments)


def _shorter(excerpt: Excerpt, room: int, shown: _Shown, encoder: PieceEncoder) -> Piece | None:
    request = shown.request
    is_long = excerpt.later and encoder.count(excerpt.note) > LONG_NOTE_TOKENS
    if is_long and all(shown.holds(text) for text in excerpt.later):
        excerpt = replace(excerpt, note=prompts.load("fact_outdated", request.language))

    def fits(part: Excerpt) -> bool:
        return encoder.excerpt(part, request.language).tokens <= room

    part = excerpt if fits(excerpt) else shortened(excerpt, request.query, fits)
    return None if part is None else encoder.excerpt(part, request.language)
