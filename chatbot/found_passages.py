"""The passages of a chat's documents that suit a question. Knows no turns and no prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from chatbot.budget import ContextBudget
from chatbot.messages import Notice
from chatbot.settings import Settings
from retrieval.pipeline import Library
from retrieval.types import Lost, ModelUnusableError, Passage


@dataclass(frozen=True, slots=True)
class Found:
    """Passages for a question, best first. `whole_scope`: every chunk in scope is among them."""

    passages: tuple[Passage, ...] = ()
    whole_scope: bool = False
    searched: bool = False
    notices: tuple[Notice, ...] = ()


def found_passages(
    library: Library | None,
    settings: Settings,
    query: str,
    document_ids: Sequence[str],
    *,
    budget: ContextBudget,
    free_tokens: int,
) -> Found:
    """Passages in scope. `free_tokens` is what the turns would leave if all of them came."""
    if library is None or not document_ids or settings.passage_share <= 0:
        return Found()
    infos = {info.id: info for info in library.documents()}
    in_scope = [infos[i] for i in document_ids if i in infos]
    lost = library.store.lost([info.id for info in in_scope])
    in_scope = [info for info in in_scope if info.id not in lost.ids]
    notices = _lost_notices(lost)
    if not in_scope:
        return Found(searched=bool(lost.ids), notices=notices)
    whole = sum(info.tokens for info in in_scope) <= budget.limit_tokens
    share = int(budget.limit_tokens * settings.passage_share)
    search = partial(
        library.search,
        query,
        document_ids=[info.id for info in in_scope],
        top_k=settings.top_k,
        budget_tokens=None if whole else max(free_tokens, share, 1),
    )
    try:
        found = search()
    except ModelUnusableError as error:
        text = f"Documents are searched by their words only for now. {error}"
        notices += (Notice("words_only", text),)
        found = search(by_words=True)
    if not whole:
        return Found(tuple(found), searched=True, notices=notices)
    ranked = {passage.chunk_id for passage in found}
    rest = [
        replace(passage, score=0.0)
        for info in in_scope
        for passage in library.chunks(info.id)
        if passage.chunk_id not in ranked
    ]
    whole = not lost.ids
    return Found((*found, *rest), whole_scope=whole, searched=True, notices=notices)


def _lost_notices(lost: Lost) -> tuple[Notice, ...]:
    """A model that is shown nothing of a document makes something up; the reader is to know."""
    if not lost.ids:
        return ()
    return (Notice("documents_lost", lost.sentence, {"documents": len(lost.ids)}),)
