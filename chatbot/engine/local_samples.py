"""Several short replies to one prompt, read without a cache; knows ids, logits and streams of text.

Self-consistency (Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language
Models, arXiv 2203.11171) for short answers: drawn several times, the one that most agree on is
likelier right. All are read in one batch, and what two of them share is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from chatbot.engine.base import SamplingParams
from chatbot.engine.kv_none import read_rows
from chatbot.engine.sampling import TokenChooser
from chatbot.engine.text_stream import TextStream
from chatbot.engine.votes import Verdict, majority
from chatbot.messages import Finish, Notice

SHORT_TOKENS = 32
"""Longer answers do not agree word for word, so nothing is gained by drawing them again."""
DRAWN_TEMPERATURE, DRAWN_TOP_P = 0.7, 0.95
"""How the others are drawn where the reply itself is greedy: they have to differ."""


@dataclass(slots=True)
class Sample:
    """One of the replies while it is being made."""

    chooser: TokenChooser
    stream: TextStream
    stop_ids: frozenset[int]
    max_tokens: int
    ids: list[int] = field(default_factory=list)
    finish: Finish | None = None
    """None while it is not at its end."""

    def take(self, logits: torch.Tensor) -> None:
        """Choose the next token."""
        token = self.chooser.choose(logits)
        if token in self.stop_ids:
            self.finish = "stop"
            return
        self.ids.append(token)
        self.stream.push(token)
        if self.stream.stopped:
            self.finish = "stop"
        elif len(self.ids) == self.max_tokens:
            self.finish = "length"

    @property
    def answer(self) -> str | None:
        """The text of a reply that came to an end by itself."""
        return self.stream.text if self.finish == "stop" else None


def samples_of(
    params: SamplingParams,
    number: int,
    make_stream: Callable[[], TextStream],
    stop_ids: frozenset[int],
    device: torch.device,
) -> tuple[Sample, ...]:
    """The reply as it would be made alone, and `number` - 1 others beside it."""
    drawn = params
    if params.temperature == 0:
        drawn = replace(params, temperature=DRAWN_TEMPERATURE, top_p=DRAWN_TOP_P)
    if drawn.seed is None and params.temperature == 0:
        drawn = replace(drawn, seed=0)  # greedy replies are repeatable, so is the choice among them
    ways = [params]
    for n in range(1, number):
        ways.append(replace(drawn, seed=None if drawn.seed is None else drawn.seed + n))
    return tuple(
        Sample(TokenChooser(way, (), device), make_stream(), stop_ids, params.max_tokens)
        for way in ways
    )


def draw(
    model: Any,
    prompt_ids: Sequence[int],
    logits: torch.Tensor,
    samples: Sequence[Sample],
    turn: Callable[[], AbstractContextManager[None]],
) -> None:
    """Go on with all samples together until each has ended or is no longer short.

    `logits` are those after the prompt; `turn` is held for each call of the model.
    """
    going = list(samples)
    rows: dict[tuple[int, ...], torch.Tensor] = {(): logits}
    for step in range(SHORT_TOKENS):
        for sample in going:
            sample.take(rows[tuple(sample.ids)])
        going = [sample for sample in going if sample.finish is None]
        if not going or step == SHORT_TOKENS - 1:
            return
        distinct = list(dict.fromkeys(tuple(sample.ids) for sample in going))
        with turn():
            found = read_rows(model, [(*prompt_ids, *ids) for ids in distinct])
        rows = dict(zip(distinct, found, strict=True))


def settle(samples: Sequence[Sample]) -> tuple[Sample, Notice | None]:
    """The sample that the majority agrees with, and what to say about it.

    The first one, without a word, when it is too long to be compared.
    """
    first = samples[0]
    if first.answer is None:
        return first, None
    for sample in samples:
        if sample.answer is not None:
            sample.stream.finish()
    verdict: Verdict = majority([sample.answer for sample in samples])
    text = f"{verdict.agreed} of {len(samples)} short samples agreed on this answer."
    values = {"agreed": verdict.agreed, "samples": len(samples)}
    return samples[verdict.winner], Notice("samples_agreed", text, values)
