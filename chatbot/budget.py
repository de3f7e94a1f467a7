"""Who gets which tokens of a prompt: integers in, integers out. Knows no texts and no model.

All optional pieces stand in one order of precedence that does not depend on the window. A prompt
takes the longest head of it that fits, then fills up with pieces further down: the summary,
excerpts, at most one turn or passage. So one token more never costs more than one of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile

from chatbot.errors import BudgetError

NEWEST_TURN_CLAIM_TOKENS = 600
"""The newest turn comes before everything else up to this size; larger, it competes."""
RECENT_TURN_CLAIM_TOKENS = 256
"""The same for the other turns of the guaranteed minimum."""
DEFAULT_REPLY_TOKENS = 512
MIN_REPLY_TOKENS = 16


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """What a prompt may hold. `limit_tokens` = window - reply.

    Shares weigh passages and recalled excerpts against older turns, which weigh what is left.
    """

    limit_tokens: int
    reply_tokens: int
    passage_share: float = 0.5
    recall_share: float = 0.25
    min_recent_turns: int = 2
    pinned_turns: int = 0
    """Newest turns that come first whatever their size, so that the front of the prompt stays."""
    reply_shortened: bool = False
    """The wanted reply did not leave enough room for a prompt and was shortened."""

    @property
    def window_tokens(self) -> int:
        return self.limit_tokens + self.reply_tokens


@dataclass(frozen=True, slots=True)
class Candidates:
    """Token costs of everything that wants to be in the prompt.

    `turns` are newest first, `recalled` and `passages` best first. A header is paid once when
    its list has at least one member in the prompt. `recalled_turns[i]` is the position in
    `turns` of the turn that excerpt i comes from (None: not among them): an excerpt is useless
    when its turn is there whole.
    """

    system_tokens: int
    question_tokens: int
    summary_tokens: int = 0
    turns: Sequence[int] = ()
    recalled: Sequence[int] = ()
    passages: Sequence[int] = ()
    recalled_turns: Sequence[int | None] = ()
    recalled_header_tokens: int = 0
    passages_header_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Allocation:
    """What goes in. `turns` newest turns, the first `passages` passages, `recalled` by index."""

    prompt_tokens: int
    limit_tokens: int
    reply_tokens: int
    summary: bool
    turns: int
    passages: int
    recalled: tuple[int, ...] = ()
    redundant: frozenset[int] = field(default_factory=frozenset)
    """Recalled excerpts left out because their turn is in the prompt anyway."""


def context_budget(
    window_tokens: int,
    reply_tokens: int = 0,
    *,
    passage_share: float = 0.5,
    recall_share: float = 0.25,
    min_recent_turns: int = 2,
) -> ContextBudget:
    """Divide a window. `reply_tokens` 0 takes a quarter of it, at most 512.

    A reply never gets more than half of the window, since the prompt needs room as well; then
    `reply_shortened` is set, so that the user can be told.
    """
    half = max(window_tokens // 2, 1)
    automatic = min(DEFAULT_REPLY_TOKENS, max(window_tokens // 4, MIN_REPLY_TOKENS))
    reply = min(reply_tokens or automatic, half)
    return ContextBudget(
        limit_tokens=window_tokens - reply,
        reply_tokens=reply,
        passage_share=passage_share,
        recall_share=recall_share,
        min_recent_turns=min_recent_turns,
        reply_shortened=bool(reply_tokens) and reply < reply_tokens,
    )


def check_required(budget: ContextBudget, candidates: Candidates) -> int:
    """Tokens that are free for optional pieces.

    Raises BudgetError when the system text and the question alone are too long.
    """
    required = candidates.system_tokens + candidates.question_tokens
    missing = required - budget.limit_tokens
    if missing > 0:
        message = (
            f"The system text ({candidates.system_tokens} tokens) and the question "
            f"({candidates.question_tokens} tokens) do not fit the prompt of "
            f"{budget.limit_tokens} tokens: {missing} too many. Shorten them, or use a larger "
            "window (--window-tokens, and --kv-cache-bytes where it is set) or a shorter reply "
            "(--reply-tokens)."
        )
        raise BudgetError(message, missing)
    return -missing


def allocate(budget: ContextBudget, candidates: Candidates) -> Allocation:
    """Choose the pieces of one prompt. Raises BudgetError as `check_required` does."""
    filling = _Filling(candidates, free=check_required(budget, candidates))
    blocked = False
    spare_taken = False
    for kind, index in precedence(budget, candidates):
        if not filling.may_come(kind, index):
            continue
        single = kind in ("turn", "passage")
        if filling.cost(kind, index) > filling.free:
            blocked = True
        elif not (blocked and single and spare_taken):
            spare_taken = spare_taken or (blocked and single)
            filling.take(kind, index)
    return filling.result(budget)


def precedence(budget: ContextBudget, candidates: Candidates) -> list[tuple[str, int]]:
    """All optional pieces, the most needed first; independent of the window.

    The guaranteed newest turns, the summary, then turns, excerpts and passages mixed so that
    at any point each kind has had its share of the tokens (weighted fair queueing).
    """
    claimed = _claimed_turns(budget, candidates)
    order: list[tuple[str, int]] = [("turn", i) for i in range(claimed)]
    if candidates.summary_tokens:
        order.append(("summary", 0))
    weight_turns = max(1.0 - budget.passage_share - budget.recall_share, 0.05)
    queue = [
        *_finish_times("passage", candidates.passages, budget.passage_share, 0),
        *_finish_times("recalled", candidates.recalled, budget.recall_share, 0),
        *_finish_times("turn", candidates.turns, weight_turns, claimed),
    ]
    queue.sort(key=lambda entry: entry[0])
    return order + [(kind, index) for _, kind, index in queue]


def _claimed_turns(budget: ContextBudget, candidates: Candidates) -> int:
    limits = [NEWEST_TURN_CLAIM_TOKENS, *[RECENT_TURN_CLAIM_TOKENS] * budget.min_recent_turns]
    newest = zip(candidates.turns[: budget.min_recent_turns], limits, strict=False)
    claimed = len(list(takewhile(lambda turn: turn[0] <= turn[1], newest)))
    return max(claimed, min(budget.pinned_turns, len(candidates.turns)))


def _finish_times(
    kind: str, costs: Sequence[int], weight: float, start: int
) -> list[tuple[float, str, int]]:
    if weight <= 0:
        return []
    used = accumulate(costs[start:])
    return [(tokens / weight, kind, index) for index, tokens in enumerate(used, start)]


class _Filling:
    """The running state of one allocation."""

    def __init__(self, candidates: Candidates, free: int) -> None:
        self.candidates = candidates
        self.free = free
        self.turns = 0
        self.passages = 0
        self.summary = False
        self.recalled: list[int] = []
        self.redundant: set[int] = set()
        self.origins = candidates.recalled_turns or [None] * len(candidates.recalled)

    def may_come(self, kind: str, index: int) -> bool:
        """Turns and passages come without gaps; an excerpt only if its turn is not there."""
        if kind == "turn":
            return index == self.turns
        if kind == "passage":
            return index == self.passages
        if kind == "recalled" and self._is_redundant(index):
            self.redundant.add(index)
            return False
        return True

    def cost(self, kind: str, index: int) -> int:
        c = self.candidates
        if kind == "summary":
            return c.summary_tokens
        if kind == "turn":
            return c.turns[index]
        if kind == "passage":
            return c.passages[index] + (0 if self.passages else c.passages_header_tokens)
        return c.recalled[index] + (0 if self.recalled else c.recalled_header_tokens)

    def take(self, kind: str, index: int) -> None:
        self.free -= self.cost(kind, index)
        if kind == "turn":
            self.turns += 1
            self._give_back_excerpts()
        elif kind == "passage":
            self.passages += 1
        elif kind == "summary":
            self.summary = True
        else:
            self.recalled.append(index)

    def result(self, budget: ContextBudget) -> Allocation:
        return Allocation(
            prompt_tokens=budget.limit_tokens - self.free,
            limit_tokens=budget.limit_tokens,
            reply_tokens=budget.reply_tokens,
            summary=self.summary,
            turns=self.turns,
            passages=self.passages,
            recalled=tuple(self.recalled),
            redundant=frozenset(self.redundant),
        )

    def _is_redundant(self, index: int) -> bool:
        origin = self.origins[index]
        return origin is not None and origin < self.turns

    def _give_back_excerpts(self) -> None:
        """A turn has just come in whole: excerpts of it are of no more use."""
        for index in [i for i in self.recalled if self._is_redundant(i)]:
            self.recalled.remove(index)
            self.redundant.add(index)
            self.free += self.candidates.recalled[index]
            if not self.recalled:
                self.free += self.candidates.recalled_header_tokens
