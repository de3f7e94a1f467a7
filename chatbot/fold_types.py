"""What travels around a fold: its settings, the model as a function, the result. No behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from chatbot.extractive import Embed
from chatbot.fold_plan import FoldBackoff
from chatbot.messages import Finish, FoldDecision, Notice, RollingSummary
from retrieval.types import CountTokens


class ModelReply(NamedTuple):
    """What a model made of a summary prompt. `tokens` counts `text`."""

    text: str
    finish: Finish
    tokens: int


CallModel = Callable[[str, str, int], tuple[str, Finish, int]]
"""(system text, user text, most tokens of the reply) -> ModelReply. May raise ChatbotError."""


@dataclass(frozen=True, slots=True)
class FoldSettings:
    """What folding needs to know of the settings and the model.

    `window_tokens` is the longest prompt and reply of a summary call together, and
    `overhead_tokens` what the chat template adds to its two texts.
    """

    mode: Literal["off", "extractive", "model"] = "model"
    cap_tokens: int = 256
    window_tokens: int = 2048
    overhead_tokens: int = 32
    spared: str = ""
    """Why no model is to be asked this time, for the record; "" if it is."""


@dataclass(frozen=True, slots=True)
class FoldResult:
    """A new summary, or None while a refused one waits for its retry at the next opportunity.

    `decisions` say in order what was tried and why it was kept or refused. `backoff` is the state
    for the conversation's next fold. `covered_all` is False when only the first part of the span
    was folded; the rest is due next.
    """

    summary: RollingSummary | None
    decisions: tuple[FoldDecision, ...]
    model_calls: int
    backoff: FoldBackoff
    covered_all: bool = True


def refusal_notice(decision: FoldDecision) -> Notice:
    """What a user is told of a summary that was refused."""
    reason = "; ".join(decision.reasons)
    text = (
        f"A summary of the older turns was refused ({reason}). The turns are all kept and searched "
        "for what a question needs; another summary is made soon."
    )
    return Notice("summary_refused", text, {"reason": reason})


@dataclass(frozen=True, slots=True)
class FoldTools:
    """What a fold works with. Without `call_model` there are extractive summaries only."""

    settings: FoldSettings
    count_tokens: CountTokens
    call_model: CallModel | None = None
    embed: Embed | None = None
