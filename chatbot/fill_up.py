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
    filled = _best_first(request, pieces, allocation, encoder)
    shown = allocation.redundant.union(filled.allocation.recalled)
    for index in [i for i in range(len(pieces.recalled)) if i not in shown][:MOST]:
        room = filled.room()
        if room < LEAST_TOKENS:
            break
        piece = _shorter(request.excerpts[index], room, filled, encoder)
        if piece is not None:
            filled = filled.with_excerpt(index, piece)
    return filled.pieces, filled.allocation


def _best_first(
    request: PromptRequest, pieces: Pieces, allocation: Allocation, encoder: PieceEncoder
) -> _Shown:
    """What is filled; if excerpts that match less have taken the room of the best one, with the
    best one in a shorter form, and the others as far as there is room behind it."""
    shown = _Shown(request, pieces, allocation)
    recalled, costs = allocation.recalled, pieces.candidates.recalled
    best = next((i for i in range(len(costs)) if i not in allocation.redundant), None)
    if best is None or not recalled or best in recalled:
        return shown
    freed = sum(costs[i] for i in recalled) + pieces.candidates.recalled_header_tokens
    bare = replace(allocation, recalled=(), prompt_tokens=allocation.prompt_tokens - freed)
    filled = _Shown(request, pieces, bare)
    room = filled.room()
    piece = (
        _shorter(request.excerpts[best], room, filled, encoder) if room >= LEAST_TOKENS else None
    )
    if piece is None:
        return shown
    filled = filled.with_excerpt(best, piece)
    for index in recalled:
        if costs[index] <= filled.room():
            filled = filled.with_excerpt(index, pieces.recalled[index])
    return filled


@dataclass(frozen=True, slots=True)
class _Shown:
    """A prompt as far as it is filled."""

    request: PromptRequest
    pieces: Pieces
    allocation: Allocation

    def room(self) -> int:
        """Tokens that one more excerpt may have."""
        header = 0 if self.allocation.recalled else self.pieces.candidates.recalled_header_tokens
        return self.allocation.limit_tokens - self.allocation.prompt_tokens - header

    def with_excerpt(self, index: int, piece: Piece) -> _Shown:
        """The same with an excerpt of this number, as this piece."""
        recalled = list(self.pieces.recalled)
        recalled[index] = piece
        old = self.allocation
        tokens = old.limit_tokens - self.room() + piece.tokens
        allocation = replace(old, recalled=(*old.recalled, index), prompt_tokens=tokens)
        return replace(
            self, pieces=replace(self.pieces, recalled=tuple(recalled)), allocation=allocation
        )

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
