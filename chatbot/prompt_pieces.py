"""Everything that wants into one prompt, as counted pieces. Decides nothing, calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import prompts
from chatbot.budget import Candidates, ContextBudget
from chatbot.excerpts import Excerpt
from chatbot.messages import Conversation, Notice
from chatbot.render import Piece, PieceEncoder, TurnPiece, labels_for
from retrieval.types import Passage


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """What one question brings. `excerpts` and `passages` are best first.

    `whole_scope` says that `passages` holds every chunk of every document in scope, so that the
    prompt holds the documents whole if all of them fit.
    """

    conversation: Conversation
    question: str
    system_text: str
    language: str
    budget: ContextBudget
    query: str = ""
    excerpts: Sequence[Excerpt] = ()
    standing: Sequence[Excerpt] = ()
    """What the user asked to hold for all later turns. It stands beside the summary, since it stays
    the same from turn to turn."""
    passages: Sequence[Passage] = ()
    whole_scope: bool = False
    searched_documents: bool = False
    """Documents were in scope; if none of their passages is relevant, the prompt says so."""
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Pieces:
    """All pieces that want in, and their costs for the allocation."""

    system: Piece
    question: Piece
    summary: Piece | None
    standing: tuple[Piece, ...]
    turns: tuple[TurnPiece, ...]
    """Newest first; only as many as could fit at all."""
    recalled: tuple[Piece, ...]
    passages: tuple[Piece, ...]
    labels: tuple[str, ...]
    recalled_header: str
    passages_header: str
    candidates: Candidates


def make_pieces(request: PromptRequest, encoder: PieceEncoder) -> Pieces:
    conversation, language = request.conversation, request.language
    covered = conversation.summary.covers if conversation.summary else 0
    turns = _recent_turns(request, covered, encoder)
    known = conversation.summary
    summary = encoder.summary(known, language) if known and (known.text or known.facts) else None
    standing = _standing(request, encoder)
    recalled = tuple(encoder.excerpt(e, language) for e in request.excerpts)
    labels = labels_for(request.passages)
    passages = tuple(
        encoder.passage(p, label) for p, label in zip(request.passages, labels, strict=True)
    )
    recalled_header = f"{prompts.load('label_recalled', language)}\n"
    passages_header = _passages_header(language)
    system = encoder.system(request.system_text)
    question = encoder.question(request.question, _lead(request))
    if system.segment.tokens + question.segment.tokens > request.budget.limit_tokens:
        question = encoder.question(request.question)  # the lead alone may be what is too much
    newest = len(conversation.turns) - 1
    candidates = Candidates(
        system_tokens=system.segment.tokens,
        question_tokens=question.segment.tokens,
        summary_tokens=(summary.tokens if summary else 0) + sum(p.tokens for p in standing),
        turns=[turn.tokens for turn in turns],
        recalled=[piece.tokens for piece in recalled],
        passages=[piece.tokens for piece in passages],
        recalled_turns=[
            newest - e.position if e.position >= covered else None for e in request.excerpts
        ],
        recalled_header_tokens=encoder.count(recalled_header),
        passages_header_tokens=encoder.count(passages_header),
    )
    return Pieces(
        system,
        question,
        summary,
        standing,
        turns,
        recalled,
        passages,
        labels,
        recalled_header,
        passages_header,
        candidates,
    )


def _standing(request: PromptRequest, encoder: PieceEncoder) -> tuple[Piece, ...]:
    pieces = [encoder.standing(e, request.language) for e in _in_order(request.standing)]
    if pieces:
        header = f"\n\n{prompts.load('label_standing', request.language)}\n"
        pieces[0] = encoder.with_header(pieces[0], header)
    return tuple(pieces)


def _in_order(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    return sorted(excerpts, key=lambda e: (e.position, e.start))


def _recent_turns(
    request: PromptRequest, covered: int, encoder: PieceEncoder
) -> tuple[TurnPiece, ...]:
    """Turns that the summary does not cover, newest first, up to the first that cannot fit."""
    pieces: list[TurnPiece] = []
    used = 0
    for turn in reversed(request.conversation.turns[covered:]):
        piece = encoder.turn(turn)
        pieces.append(piece)
        used += piece.tokens
        if used > request.budget.limit_tokens:
            break
    return tuple(pieces)


def passages_frame_tokens(language: str, encoder: PieceEncoder) -> int:
    """What passages cost a prompt beside themselves."""
    return encoder.count(_passages_header(language)) + encoder.count(_question_label(language))


def _passages_header(language: str) -> str:
    return f"{prompts.load('documents', language)}\n{prompts.load('label_passages', language)}\n\n"


def _question_label(language: str) -> str:
    return f"{prompts.load('label_question', language)}\n"


def _lead(request: PromptRequest) -> str:
    """What stands between the found texts and the question."""
    if request.passages or request.excerpts:
        return _question_label(request.language)
    if request.searched_documents:
        return f"{prompts.load('no_passages', request.language)}\n\n"
    return ""
