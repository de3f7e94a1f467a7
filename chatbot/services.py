"""Builds the parts of the program and joins them; the only place that knows all of them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from chatbot.chat import Chat
from chatbot.engine.base import Engine
from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.parts import (
    MakeEmbedder,
    load_engine,
    make_private,
    open_library,
    open_recall_vectors,
    use_prompts,
)
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.pipeline import Library


@dataclass(frozen=True, slots=True)
class Services:
    """The running program. The engine may still be loading; `engine.status` tells."""

    settings: Settings
    store: Store
    library: Library
    engine: Engine
    chat: Chat

    def close(self) -> None:
        """Stop everything, the last built first. Idempotent."""
        with ExitStack() as stack:
            for part in (self.store, self.library, self.engine, self.chat):
                stack.callback(part.close)


def build_services(
    settings: Settings,
    *,
    engine: Engine | None = None,
    make_embedder: MakeEmbedder | None = None,
    progress: Progress = ignore_progress,
) -> Services:
    """Everything for one data folder. `engine` None loads the configured model in the background.

    Raises StoreError for a data folder that cannot be used, and what the parts raise.
    """
    with ExitStack() as stack:
        use_prompts(settings)
        make_private(settings.data_dir)
        store = Store(settings.data_dir / "chats.db")
        stack.callback(store.close)
        ready = engine or load_engine(settings)
        stack.callback(ready.close)
        library = open_library(
            settings,
            lambda text: len(ready.tokenizer.encode(text)),
            make_embedder=make_embedder,
            progress=progress,
        )
        stack.callback(library.close)
        vectors = open_recall_vectors(settings, library)
        chat = Chat(settings=settings, store=store, engine=ready, library=library, vectors=vectors)
        stack.pop_all()
        return Services(settings, store, library, ready, chat)
