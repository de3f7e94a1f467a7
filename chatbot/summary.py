"""The rolling summary: when to fold and how. Knows no conversation, store or engine.

The parts: `fold_plan` decides when and which turns, `fold_run` makes the summary, `summary_gate`
judges what a model wrote, `extractive` stands in for it, `facts` keeps the user's own lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from chatbot.extractive import Embed
from chatbot.facts import LEAST_ASKED_FOR, extract_facts
from chatbot.fold_plan import FoldBackoff, plan_fold
from chatbot.fold_prompt import summarise_messages, trim_to_cap
from chatbot.fold_run import FoldRun
from chatbot.fold_types import CallModel, FoldResult, FoldSettings, FoldTools, ModelReply
from chatbot.language import Language
from chatbot.linking import linked
from chatbot.messages import RollingSummary, Turn
from retrieval.types import CountTokens

__all__ = [
    "CallModel", "FoldBackoff", "FoldResult", "FoldSettings", "Folder", "ModelReply", "plan_fold",
    "summarise_messages", "trim_to_cap",
]  # fmt: skip


class Folder:
    """Makes rolling summaries. Holds no conversation; may serve many, and several threads."""

    def __init__(
        self,
        settings: FoldSettings,
        *,
        count_tokens: CountTokens,
        call_model: CallModel | None = None,
        embed: Embed | None = None,
    ) -> None:
        self._tools = FoldTools(settings, count_tokens, call_model, embed)

    def fold(
        self,
        previous: RollingSummary | None,
        turns: Sequence[Turn],
        *,
        language: Language,
        backoff: FoldBackoff | None = None,
        max_calls: int = 1,
        stop: Event | None = None,
        before: Sequence[Turn] = (),
    ) -> FoldResult | None:
        """Fold `turns`, which are those next after the ones that `previous` covers.

        `before` are the turns that it covers, for finding what a correction corrects. At most
        `max_calls` model calls are made. With 1, the default in a normal turn, a refused summary
        changes nothing yet: the result has no summary, and the next fold, given its `backoff`,
        asks with the stricter prompt. Of a span that does not fit the model's window the first
        piece is folded.

        None when folding is off, when there is nothing to fold, and when `stop` was set: then
        everything stays as it is. A model that fails or is refused is no error: sentences of the
        turns take its place.
        """
        if (
            self._tools.settings.mode == "off"
            or not turns
            or all(not _said(turn) for turn in turns)
        ):
            return None
        state = backoff or FoldBackoff()
        listed = previous.facts if previous else ()
        known = extract_facts(before, least_weight=LEAST_ASKED_FOR)
        found = linked(extract_facts(turns), known, listed)
        run = FoldRun(self._tools, previous, tuple(turns), language, state, stop, found)
        return run.run(max_calls)


def _said(turn: Turn) -> bool:
    return any(message.content.strip() for message in (*turn.user, *turn.assistant))
