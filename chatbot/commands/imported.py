"""Folds an imported conversation as a running chat would have, without keeping it."""

from __future__ import annotations

import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from chatbot.commands.common import wait_for_engine
from chatbot.console import Console
from chatbot.engine.base import Engine
from chatbot.engine.scripted import ScriptedEngine
from chatbot.fold_job import FoldJob
from chatbot.messages import Conversation
from chatbot.parts import load_engine
from chatbot.prompting import PromptBuilder
from chatbot.settings import Settings
from chatbot.store import Store


def fold_imported(
    conversation: Conversation,
    builder: PromptBuilder,
    settings: Settings,
    *,
    window_tokens: int,
    console: Console,
) -> Conversation:
    """The conversation with the rolling summary that it would have by now.

    Loads the configured model only for summaries by the model, and then lets that model's own
    tokenizer say when to fold.
    """
    if settings.summary == "off" or not conversation.turns:
        return conversation
    if settings.summary == "extractive":
        # Never asked for a reply: sentences of the turns themselves are taken.
        nobody = ScriptedEngine()
        return _folded(conversation, nobody, builder, settings, window_tokens, console)
    engine = load_engine(settings)
    with closing(engine):
        wait_for_engine(engine, console)
        own = PromptBuilder(engine.tokenizer, settings, None)
        window = min(window_tokens, engine.info.max_window_tokens)
        return _folded(conversation, engine, own, settings, window, console)


def _folded(
    conversation: Conversation,
    engine: Engine,
    builder: PromptBuilder,
    settings: Settings,
    window_tokens: int,
    console: Console,
) -> Conversation:
    with (
        tempfile.TemporaryDirectory(prefix="chatbot-fold-") as folder,
        closing(Store(Path(folder) / "chats.db")) as store,
    ):
        stored = store.import_conversation(conversation)
        job = FoldJob(
            settings, store, engine, builder=lambda: builder, window=lambda: window_tokens
        )
        never, idle = threading.Event(), 0
        # A refused summary is asked for again at the next call, so that one without progress
        # is not yet the end.
        while idle < 2:
            idle = 0 if job(stored.id, never) else idle + 1
            summary = store.load(stored.id).summary
            covers = summary.covers if summary else 0
            console.progress(f"Folding: {covers} of {len(conversation.turns)} turns")
        console.clear_progress()
        return replace(conversation, summary=store.load(stored.id).summary)
