"""One prompt out of everything known: count, allocate, render, trace. Calls no model and no index.

The request holds what was found for the question; the result holds the ids for the engine, the
trace for people, and the passages that really went in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import prompts
from chatbot.budget import Allocation, Candidates, ContextBudget, allocate
from chatbot.excerpts import Excerpt
from chatbot.messages import Conversation, Dropped, Notice, PromptTrace, Segment
from chatbot.render import Piece, PieceEncoder, PromptParts, TurnPiece, labels_for, render
from retrieval.context import LabelledPassage
from retrieval.types import Passage

PREVIEW_CHARACTERS = 160
LISTED_TURNS = 20
"""Turns without room are listed one by one up to this many, then counted."""


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
class AssembledPrompt:
    """A prompt, ready for the engine."""

    token_ids: tuple[int, ...]
    trace: PromptTrace
    passages: tuple[LabelledPassage, ...]

    def with_notices(self, notices: tuple[Notice, ...]) -> AssembledPrompt:
        """The same prompt, with notices that come before its own."""
        trace = replace(self.trace, notices=(*notices, *self.trace.notices))
        return replace(self, trace=trace)


def assemble(request: PromptRequest, encoder: PieceEncoder) -> AssembledPrompt:
    """Build the prompt. Raises BudgetError when system text and question alone do not fit."""
    pieces = _make_pieces(request, encoder)
    allocation = allocate(request.budget, pieces.candidates)
    parts, chosen = _choose(request, pieces, allocation, encoder)
    rendered = render(parts, encoder.format)
    counted = len(rendered.token_ids)
    if counted != allocation.prompt_tokens or counted > request.budget.limit_tokens:
        message = f"prompt of {counted} tokens, allocated {allocation.prompt_tokens}"
        raise AssertionError(message)
    rendered = encoder.settled(rendered)
    trace = PromptTrace(
        question=request.question,
        prompt_tokens=len(rendered.token_ids),
        limit_tokens=request.budget.limit_tokens,
        reply_tokens=request.budget.reply_tokens,
        segments=rendered.segments,
        dropped=_left_out(request, pieces, allocation),
        query=request.query,
        notices=(*request.notices, *_notices(request, allocation)),
        estimated=encoder.estimates,
    )
    return AssembledPrompt(rendered.token_ids, trace, chosen)


@dataclass(frozen=True, slots=True)
class _Pieces:
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


def _make_pieces(request: PromptRequest, encoder: PieceEncoder) -> _Pieces:
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
    return _Pieces(
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


def _choose(
    request: PromptRequest, pieces: _Pieces, allocation: Allocation, encoder: PieceEncoder
) -> tuple[PromptParts, tuple[LabelledPassage, ...]]:
    # Oldest first, so that the excerpts read as a story.
    order = sorted(
        allocation.recalled, key=lambda i: (request.excerpts[i].position, request.excerpts[i].start)
    )
    recalled = [pieces.recalled[i] for i in order]
    ranks = list(range(allocation.passages))
    if is_whole(request, allocation):
        place = {name: n for n, name in enumerate(request.conversation.document_ids)}
        ranks.sort(key=lambda i: _place(request.passages[i], place))
    passages = [pieces.passages[i] for i in ranks]
    if recalled:
        recalled[0] = encoder.with_header(recalled[0], pieces.recalled_header)
    if passages:
        passages[0] = encoder.with_header(passages[0], pieces.passages_header)
    parts = PromptParts(
        system=pieces.system,
        summary=pieces.summary if allocation.summary else None,
        turns=tuple(reversed(pieces.turns[: allocation.turns])),
        recalled=tuple(recalled),
        passages=tuple(passages),
        question=pieces.question,
        standing=pieces.standing if allocation.summary else (),
    )
    chosen = tuple(LabelledPassage(pieces.labels[i], request.passages[i]) for i in ranks)
    return parts, chosen


def _place(passage: Passage, documents: Mapping[str, int]) -> tuple[int, str, int]:
    """Documents in the order in which the chat has them, each from its beginning."""
    return documents.get(passage.document_id, len(documents)), passage.document, passage.start


def is_whole(request: PromptRequest, allocation: Allocation) -> bool:
    """Whether the documents in scope are in the prompt whole."""
    complete = allocation.passages == len(request.passages)
    return request.whole_scope and complete and bool(request.passages)


def _notices(request: PromptRequest, allocation: Allocation) -> tuple[Notice, ...]:
    notices: list[Notice] = []
    if request.budget.reply_shortened:
        tokens = request.budget.reply_tokens
        text = f"The reply may have {tokens} tokens at most, so that the prompt has room."
        notices.append(Notice("reply_shortened", text, {"tokens": tokens}))
    if is_whole(request, allocation):
        notices.append(Notice("documents_whole", "The documents are in the prompt whole."))
    elif request.passages:
        n, found = allocation.passages, len(request.passages)
        text = f"{n} of {found} passages found are in the prompt."
        notices.append(Notice("documents_passages", text, {"passages": n, "found": found}))
    return tuple(notices)


def _left_out(
    request: PromptRequest, pieces: _Pieces, allocation: Allocation
) -> tuple[Dropped, ...]:
    dropped: list[Dropped] = []
    if pieces.summary is not None and not allocation.summary:
        dropped.append(Dropped(_preview(pieces.summary.segment), "no room"))
    dropped += _turns_left_out(request, pieces, allocation)
    # An excerpt whose turn is in the prompt whole is not missing there.
    shown = allocation.redundant.union(allocation.recalled)
    for index, piece in enumerate(pieces.recalled):
        if index not in shown:
            dropped.append(Dropped(_preview(piece.segment), "no room"))
    for piece in pieces.passages[allocation.passages :]:
        dropped.append(Dropped(_preview(piece.segment), "no room"))
    return tuple(dropped)


def _turns_left_out(
    request: PromptRequest, pieces: _Pieces, allocation: Allocation
) -> list[Dropped]:
    turns, summary = request.conversation.turns, request.conversation.summary
    dropped = [
        Dropped(_preview(piece.segment), "no room; searched for what the question needs")
        for piece in pieces.turns[allocation.turns :][:LISTED_TURNS]
    ]
    covered = summary.covers if summary else 0
    unlisted = len(turns) - covered - allocation.turns - len(dropped)
    if unlisted > 0:
        reason = f"{unlisted} older turns: no room; searched for what the question needs"
        dropped.append(Dropped(Segment("turn", 0, ""), reason))
    if covered:
        reason = f"{covered} oldest turns: folded into the summary, and searched"
        dropped.append(Dropped(Segment("turn", 0, ""), reason))
    return dropped


def _preview(segment: Segment) -> Segment:
    if len(segment.text) <= PREVIEW_CHARACTERS:
        return segment
    return replace(segment, text=segment.text[:PREVIEW_CHARACTERS] + "…")
