"""One prompt out of everything known: count, allocate, render, trace. Calls no model and no index.

The request holds what was found for the question; the result holds the ids for the engine, the
trace for people, and the passages that really went in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chatbot.budget import Allocation, allocate
from chatbot.fill_up import fill_up
from chatbot.messages import Dropped, Notice, PromptTrace, Segment
from chatbot.prompt_pieces import Pieces, PromptRequest, make_pieces
from chatbot.render import PieceEncoder, PromptParts, render
from retrieval.context import LabelledPassage
from retrieval.types import Passage

PREVIEW_CHARACTERS = 160
LISTED_TURNS = 20
"""Turns without room are listed one by one up to this many, then counted."""


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
    pieces = make_pieces(request, encoder)
    allocation = allocate(request.budget, pieces.candidates)
    pieces, allocation = fill_up(request, pieces, allocation, encoder)
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
        notices=(*request.notices, *_notices(request, pieces, allocation)),
        estimated=encoder.estimates,
    )
    return AssembledPrompt(rendered.token_ids, trace, chosen)


def _choose(
    request: PromptRequest, pieces: Pieces, allocation: Allocation, encoder: PieceEncoder
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


def _notices(request: PromptRequest, pieces: Pieces, allocation: Allocation) -> tuple[Notice, ...]:
    notices: list[Notice] = []
    if request.budget.reply_shortened:
        tokens = request.budget.reply_tokens
        text = f"The reply may have {tokens} tokens at most, so that the prompt has room."
        notices.append(Notice("reply_shortened", text, {"tokens": tokens}))
    if pieces.summary is not None and not allocation.summary:
        tokens = pieces.summary.tokens
        text = f"The summary of the older turns ({tokens} tokens) has no room in this prompt."
        notices.append(Notice("summary_left_out", text, {"tokens": tokens}))
    if is_whole(request, allocation):
        notices.append(Notice("documents_whole", "The documents are in the prompt whole."))
    elif request.passages:
        n, found = allocation.passages, len(request.passages)
        text = f"{n} of {found} passages found are in the prompt."
        notices.append(Notice("documents_passages", text, {"passages": n, "found": found}))
    return tuple(notices)


def _left_out(
    request: PromptRequest, pieces: Pieces, allocation: Allocation
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
    request: PromptRequest, pieces: Pieces, allocation: Allocation
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
