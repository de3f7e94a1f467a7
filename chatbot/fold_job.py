"""One step of folding a stored conversation: read it, fold what is due, store the new summary.

When nothing more is due, the front of the next prompt is read ahead, and old turns get the vectors
by which recall finds them, while the user reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from chatbot.engine.base import Engine, SamplingParams
from chatbot.engine.exchange import in_use
from chatbot.errors import ChatbotError
from chatbot.fold_call import SummaryCall, sentence_vectors
from chatbot.fold_history import backoff_of, untold_refusal
from chatbot.fold_plan import first_that_fit
from chatbot.fold_types import CallModel, FoldResult, FoldSettings, refusal_notice
from chatbot.language import Language
from chatbot.messages import Conversation, Notice
from chatbot.prompting import PromptBuilder
from chatbot.settings import Settings
from chatbot.store import Store
from chatbot.summary import FoldBackoff, Folder, plan_fold
from chatbot.tally import Tally
from retrieval.embed import Embedder

log = logging.getLogger(__name__)

MOST_CUT_OFF = 2
"""Folds in a row that next questions may cut off. Then sentences of the turns stand in at once:
who always asks before a model has written a summary would else never have one, and once in a row
happens to everybody who types quickly."""
_SPARED = f"{MOST_CUT_OFF} folds in a row were cut off by the next question"
FRONT_KINDS = ("system", "summary", "turn")
"""Segments that stay the same from one prompt to the next."""


class FoldJob:
    """Folds a conversation by one step; see `folding.FoldOne`. `settings` may be exchanged."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        engine: Engine,
        *,
        builder: Callable[[], PromptBuilder],
        window: Callable[[], int],
        embedder: Embedder | None = None,
        tally: Tally | None = None,
    ) -> None:
        self.settings = settings
        self._store = store
        self._engine = engine
        self._builder = builder
        self._window = window
        self._embedder = embedder
        self._tally = tally or Tally()
        self._backoffs: dict[str, FoldBackoff] = {}
        self._refusals: dict[str, Notice] = {}
        self._met: set[str] = set()
        self._cut_off: dict[str, int] = {}
        """Folds of each conversation that were cut off since its last summary was tried."""

    def __call__(self, conversation_id: str, stop: threading.Event) -> bool:
        """Fold if it is due, with at most one summary; whether more is due after it.

        Raises InputError when the conversation is gone and StoreError as the store does.
        """
        with in_use(self._engine, stop):
            return self._step(conversation_id, stop)

    def _step(self, conversation_id: str, stop: threading.Event) -> bool:
        conversation = self._store.load(conversation_id)
        if self._due(conversation) is not None and not stop.is_set():
            if self._fold(conversation_id, stop):
                return True
            conversation = self._store.load(conversation_id)
        if not stop.is_set() and self._engine.info.keeps_cache:
            self._warm(conversation, stop)
            # That takes a while.
            conversation = self._store.load(conversation_id)
        if not stop.is_set():
            builder = self._builder()
            builder.embed(conversation, builder.budget(self._window()), stop=stop)
        return False

    def make_up(self, conversation: Conversation, *, cut_off: bool) -> bool:
        """Fold without a model what questions have kept from being folded, before the next prompt.

        Called with each new question; `cut_off` says that it has ended a fold or kept it from
        beginning. Never raises for a summary: without one the turns are recalled. Whether the
        conversation is to be read again.
        """
        try:
            if self._is_overdue(conversation, cut_off):
                with self._store.claimed("fold", conversation.id) as is_mine:
                    if is_mine:
                        self._fold_claimed(conversation.id, threading.Event(), at_once=True)
                return True
        except ChatbotError as error:
            log.warning("Folding at once failed: %s", error)
        except Exception:
            # A fault of ours in a summary must not keep every question from being answered.
            log.exception("Folding at once failed by a fault in the program.")
        return False

    def _is_overdue(self, conversation: Conversation, cut_off: bool) -> bool:
        # After a reply that was stopped or failed no fold was scheduled.
        newest = conversation.turns[-1:]
        if not cut_off and (not newest or newest[0].finish in ("stop", "length")):
            return False
        conversation_id = conversation.id
        if self._due(conversation) is None:
            self._cut_off.pop(conversation_id, None)
            return False
        self._cut_off[conversation_id] = self._cut_off.get(conversation_id, 0) + 1
        return self._cut_off[conversation_id] >= MOST_CUT_OFF

    def take_notices(self, conversation_id: str) -> tuple[Notice, ...]:
        """What the user should know of the folds since this was asked last; told only once."""
        if conversation_id not in self._met:
            self._meet(conversation_id)
        notice = self._refusals.pop(conversation_id, None)
        return () if notice is None else (notice,)

    def _meet(self, conversation_id: str) -> None:
        """Take up what earlier runs of the program left, before the first fold or reply."""
        self._met.add(conversation_id)
        decisions = self._store.fold_decisions(conversation_id)
        newest = self._store.last_turns(conversation_id, 1) if decisions else ()
        if not newest:
            return
        self._backoffs.setdefault(conversation_id, backoff_of(decisions))
        if notice := untold_refusal(decisions, newest[-1].created):
            self._refusals[conversation_id] = notice

    def _warm(self, conversation: Conversation, stop: threading.Event) -> None:
        """Let the engine read all of the next prompt that is known before its question."""
        if not conversation.turns:
            return
        # Neither search results nor the question are part of the front.
        plain = replace(conversation, document_ids=())
        question = conversation.turns[-1].question
        builder = self._builder()
        prompt = builder.build(plain, question, builder.budget(self._window()))
        front = takewhile(lambda s: s.kind in FRONT_KINDS, prompt.trace.segments)
        front_ids = prompt.token_ids[: sum(segment.tokens for segment in front)]
        params = SamplingParams(max_tokens=1)
        for _ in self._engine.generate(
            front_ids, params, conversation_id=conversation.id, stop=stop
        ):
            pass

    def _fold(self, conversation_id: str, stop: threading.Event) -> bool:
        with self._store.claimed("fold", conversation_id) as is_mine:
            return is_mine and self._fold_claimed(conversation_id, stop)

    def _fold_claimed(
        self, conversation_id: str, stop: threading.Event, *, at_once: bool = False
    ) -> bool:
        # Read again: another process may have folded it meanwhile.
        conversation = self._store.load(conversation_id)
        span = self._due(conversation)
        if span is None or stop.is_set():
            return False
        if conversation_id not in self._met:
            self._meet(conversation_id)
        turns = conversation.turns[span.start : span.stop]
        if at_once:
            encoder = self._builder().encoder
            tokens = [encoder.turn(turn).tokens for turn in turns]
            turns = turns[: first_that_fit(tokens, self._window())]
        language = self._language(conversation)
        result = self._folder(language, stop, at_once=at_once).fold(
            conversation.summary,
            turns,
            language=language,
            backoff=self._backoffs.get(conversation_id),
            stop=stop,
            before=conversation.turns[: span.start],
        )
        if result is None or stop.is_set():
            return False
        if not at_once:
            self._cut_off.pop(conversation_id, None)
        return self._keep(conversation, result)

    def _keep(self, conversation: Conversation, result: FoldResult) -> bool:
        """Store what a fold has come to; whether it made a summary and more is due."""
        conversation_id = conversation.id
        self._backoffs[conversation_id] = result.backoff
        self._store.add_fold_decisions(conversation_id, result.decisions)
        for decision in result.decisions:
            log.info("Fold up to turn %d: %s", decision.covers, "; ".join(decision.reasons))
            self._tally.fold(conversation_id, decision)
            if result.model_calls and not decision.accepted:
                self._refusals[conversation_id] = refusal_notice(decision)
        if result.summary is None:
            return False
        covers = result.summary.covers
        last_turn_id = conversation.turns[covers - 1].id
        saved = self._store.save_summary(conversation_id, result.summary, last_turn_id=last_turn_id)
        return saved and not result.covered_all

    def _due(self, conversation: Conversation) -> range | None:
        if self.settings.summary == "off":
            return None
        encoder = self._builder().encoder
        finished = takewhile(lambda turn: turn.finish != "running", conversation.turns)
        s = self.settings
        return plan_fold(
            [encoder.turn(turn).tokens for turn in finished],
            conversation.summary.covers if conversation.summary else 0,
            window_tokens=self._window(),
            high=s.fold_high,
            low=s.fold_low,
            min_recent_turns=s.min_recent_turns,
            fold_turns=s.fold_turns,
        )

    def _language(self, conversation: Conversation) -> Language:
        if self.settings.summary_language != "auto":
            return self.settings.summary_language
        return self._builder().language_of(conversation, "")

    def _folder(self, language: Language, stop: threading.Event, *, at_once: bool) -> Folder:
        """`at_once`: somebody is waiting, so neither model has a part in it."""
        encoder = self._builder().encoder
        overhead = encoder.system("").segment.tokens + encoder.question("").segment.tokens
        settings = FoldSettings(
            mode=self.settings.summary,
            cap_tokens=self.settings.summary_tokens,
            window_tokens=self._window(),
            overhead_tokens=overhead,
            spared=_SPARED if at_once else "",
        )
        embedder = None if at_once else self._embedder
        return Folder(
            settings,
            count_tokens=encoder.count,
            call_model=self._ask(stop),
            embed=sentence_vectors(embedder, language, stop),
        )

    def _ask(self, stop: threading.Event) -> CallModel:
        penalty = self.settings.repetition_penalty
        return SummaryCall(self._engine, self._builder().encoder, penalty, stop)
