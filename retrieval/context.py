"""Ranked passages to what fits a token budget, whole. Knows no template, no model, no query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrieval.types import Passage


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """A passage under the label that a prompt gives it."""

    label: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class Packed:
    """What goes into a prompt, best first, and what was left out for lack of room.

    `whole` says that every chunk of every document in scope is in.
    """

    passages: tuple[LabelledPassage, ...]
    tokens: int
    left_out: tuple[Passage, ...] = ()
    whole: bool = False


def pack(
    passages: Sequence[Passage],
    budget_tokens: int,
    render_tokens: Callable[[str, Passage], int],
    *,
    scope: Sequence[Passage] | None = None,
) -> Packed:
    """Take whole passages, best first, as long as they fit.

    `render_tokens(label, passage)` counts a passage as the prompt shows it. A passage that does
    not fit is left out whole, and smaller ones after it still get their chance. When `scope`,
    all chunks of all documents in question, fits as a whole, it goes in whole, in its order.
    """
    if scope:
        labelled = tuple(LabelledPassage(str(n), p) for n, p in enumerate(scope, start=1))
        tokens = sum(render_tokens(item.label, item.passage) for item in labelled)
        if tokens <= budget_tokens:
            return Packed(labelled, tokens, whole=True)
    taken: list[LabelledPassage] = []
    left_out: list[Passage] = []
    used = 0
    for passage in passages:
        label = str(len(taken) + 1)
        cost = render_tokens(label, passage)
        if used + cost <= budget_tokens:
            taken.append(LabelledPassage(label, passage))
            used += cost
        else:
            left_out.append(passage)
    return Packed(tuple(taken), used, tuple(left_out))
