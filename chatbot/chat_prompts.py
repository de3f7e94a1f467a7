"""The part of `Chat` that makes prompts by the settings of the moment. Makes no reply."""

from __future__ import annotations

import threading
from dataclasses import replace

from chatbot.budget import ContextBudget
from chatbot.engine.base import Engine, SamplingParams
from chatbot.fold_job import FoldJob
from chatbot.hands import Hands
from chatbot.messages import PromptTrace
from chatbot.prompting import PromptBuilder
from chatbot.read_ahead import ReadAhead
from chatbot.recall_vectors import RecallVectors
from chatbot.settings import Settings
from chatbot.store import Store
from chatbot.windows import reply_tokens, usual_sampling, window_tokens
from retrieval.pipeline import Library


class ChatPrompts:
    """The builder of prompts, its budget, and what is got ready for it."""

    _settings: Settings
    _store: Store
    _engine: Engine
    _library: Library | None
    _vectors: RecallVectors | None
    _lock: threading.Lock
    _builder: PromptBuilder | None
    _fold_job: FoldJob
    _hands: Hands
    _ahead: ReadAhead

    def context(self, conversation_id: str, text: str) -> PromptTrace:
        """What a reply to `text` would see; calls no model and stores nothing."""
        conversation = self._store.load(conversation_id)
        return self.builder.build(conversation, text, self.budget()).trace

    @property
    def builder(self) -> PromptBuilder:
        """The prompt builder; waits for the tokenizer while a model is loading."""
        tokenizer = self._engine.tokenizer
        with self._lock:
            if self._builder is None or self._builder.encoder.tokenizer.name != tokenizer.name:
                self._builder = PromptBuilder(
                    tokenizer, self._settings, self._library, vectors=self._vectors
                )
            return self._builder

    def rest(self) -> None:
        """Drop what is kept encoded and indexed of the turns, as for somebody who is away; the
        next question makes it again."""
        with self._lock:
            self._builder = None

    @property
    def settings(self) -> Settings:
        """The settings that the next reply is made with."""
        return self._settings

    def change_settings(self, settings: Settings) -> None:
        """Use others from the next reply on, as far as they concern the prompt, how a reply is
        drawn, and the next fold; what concerns the model and the queue stays as it was built."""
        with self._lock:
            self._settings = self._fold_job.settings = settings
            self._hands = replace(self._hands, cap_tokens=settings.summary_tokens)
            if self._builder is not None:
                self._builder.change_settings(settings)

    def budget(self, max_tokens: int | None = None) -> ContextBudget:
        """The budget of the window in use, with room for a reply of `max_tokens` if somebody
        wants another length than the settings say."""
        wanted = self._settings.reply_tokens if max_tokens is None else max_tokens
        budget = self.builder.budget(window_tokens(self._settings, self._engine), max_tokens)
        longer = reply_tokens(wanted, self._engine, budget.reply_tokens)
        return replace(budget, reply_shortened=longer < wanted)

    def _drawn(
        self, sampling: SamplingParams | None, budget: ContextBudget, max_tokens: int | None
    ) -> SamplingParams:
        """How a reply of `max_tokens`, or as long as the settings say, is drawn."""
        wanted = self._settings.reply_tokens if max_tokens is None else max_tokens
        return replace(
            sampling or usual_sampling(self._settings),
            max_tokens=reply_tokens(wanted, self._engine, budget.reply_tokens),
        )

    def wake_recall(self) -> None:
        """Load the model that finds old turns by meaning, in the background, if it is needed."""
        if self._vectors is not None:
            self._vectors.wake()

    def read_ahead(self, conversation_id: str) -> None:
        """Get ready, in the background, for the next question in a chat that was opened."""
        if self._engine.status.state == "ready":
            self._ahead.request(conversation_id)

    def _read(self, conversation_id: str) -> None:
        newest = self._store.last_turns(conversation_id, 1)
        if newest:
            self.context(conversation_id, newest[-1].question)
