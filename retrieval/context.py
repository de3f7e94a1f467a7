"""Passages to what a prompt holds, and a reply back to its sources. Knows no template, no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from retrieval.types import Passage


class Labelled(Protocol):
    """A passage under the label that a prompt gives it."""

    @property
    def label(self) -> str: ...

    @property
    def passage(self) -> Passage: ...


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """See `Labelled`."""

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
) -> Packed:
    """Take whole passages, best first, as long as they fit.

    `render_tokens(label, passage)` counts a passage as the prompt shows it. A passage that does
    not fit is left out whole, and smaller ones after it still get their chance.
    """
    taken: list[LabelledPassage] = []
    left_out: list[Passage] = []
    tokens = 0
    for passage in passages:
        label = str(len(taken) + 1)
        cost = render_tokens(label, passage)
        if tokens + cost <= budget_tokens:
            taken.append(LabelledPassage(label, passage))
            tokens += cost
        else:
            left_out.append(passage)
    return Packed(tuple(taken), tokens, tuple(left_out))
