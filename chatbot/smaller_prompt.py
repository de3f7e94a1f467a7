"""Another, smaller prompt when memory ran out before the first token, or when a server finds it
too long; knows no model's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from chatbot.assemble import AssembledPrompt
from chatbot.budget import ContextBudget
from chatbot.engine.ladder import CALLERS_STEPS, NO_SMALLER_PROMPT
from chatbot.errors import BudgetError
from chatbot.messages import PromptTrace

FOUND = ("passage", "recalled")
SPARE_TOKENS = 16
"""Kept free below a server's limit, since its count was not ours."""
MIN_SAVED_TOKENS = 16
"""A prompt that is hardly shorter is not worth reading."""


@dataclass(frozen=True, slots=True)
class PromptMaker:
    """Makes the prompt of one question for any budget."""

    build: Callable[[ContextBudget], AssembledPrompt]
    budget_of: Callable[[int], ContextBudget]
    """The budget of a window."""

    def smaller(
        self, ladder: tuple[str, ...], prompt: AssembledPrompt
    ) -> tuple[tuple[str, ...], AssembledPrompt]:
        """The ladder with the step that was taken, and its prompt.

        Where no smaller prompt can be made it is the same one, and the ladder tells the engine.
        """
        for step in CALLERS_STEPS:
            budget = None if step in ladder else self._budget(step, prompt.trace)
            if budget is None:
                continue
            try:
                smaller = self.build(budget)
            except BudgetError:  # the question alone needs more
                continue
            if _tokens(smaller.trace) <= _tokens(prompt.trace) - MIN_SAVED_TOKENS:
                return (*ladder, step), smaller
        return (*ladder, NO_SMALLER_PROMPT), prompt

    def for_server(self, limit_tokens: int, prompt: AssembledPrompt) -> AssembledPrompt | None:
        """A prompt that a server takes which refused this one, naming its limit or (0) none.

        None where no smaller one can be made.
        """
        window = prompt.trace.limit_tokens + prompt.trace.reply_tokens
        known = min(limit_tokens, window) if limit_tokens else window * 3 // 4
        try:
            smaller = self.build(self.budget_of(known - max(SPARE_TOKENS, known // 50)))
        except BudgetError:
            return None
        return smaller if _tokens(smaller.trace) < _tokens(prompt.trace) else None

    def _budget(self, step: str, trace: PromptTrace) -> ContextBudget | None:
        """Half of what was found is left out, or half of the window."""
        window = trace.limit_tokens + trace.reply_tokens
        if step == "shorter_window":
            return self.budget_of(window // 2)
        found = sum(segment.tokens for segment in trace.segments if segment.kind in FOUND)
        if not found:
            return None
        usual = self.budget_of(window)
        return replace(
            usual,
            limit_tokens=min(usual.limit_tokens, trace.prompt_tokens - (found + 1) // 2),
            passage_share=usual.passage_share / 2,
            recall_share=usual.recall_share / 2,
        )


def _tokens(trace: PromptTrace) -> int:
    return trace.prompt_tokens + trace.reply_tokens
