"""Builds the parts of the program and joins them; the only place that knows all of them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from chatbot.chat import Chat
from chatbot.engine.base import Engine
from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.engine.owned import OwnedEngine
from chatbot.engine.switching import SwitchingEngine
from chatbot.parts import (
    MakeEmbedder,
    load_engine,
    make_private,
    open_library,
    open_recall_vectors,
    open_store,
    prepare_model,
    use_prompts,
)
from chatbot.reply_queue import ReplyQueue
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.chunk_store import ChunkStore
from retrieval.index import Index
from retrieval.milvus_index import MilvusIndex
from retrieval.pipeline import Library


@dataclass(frozen=True, slots=True)
class Services:
    """The running program. The engine may still be loading; `engine.status` tells."""

    settings: Settings
    store: Store
    library: Library
    engine: Engine
    chat: Chat

    def for_person(self, name: str) -> Services:
        """A store and a library of a person's own, at the same engine and in the same queue.

        `name` must be safe as the name of a folder; the caller closes what it gets.
        """
        folder = self.settings.data_dir / "people" / name
        settings = self.settings.model_copy(update={"data_dir": folder})
        engine = OwnedEngine(self.engine, name)
        shared = settings.database_url is not None
        documents = self.library.store
        services = _joined(
            settings,
            engine,
            make_embedder=lambda _: self.library.embedder,
            queue=self.chat.queue,
            store=self.store.for_owner(f"person:{name}") if shared else None,
            chunk_store=(
                documents.for_owner(f"person:{name}")
                if isinstance(documents, MilvusIndex)
                else None
            ),
        )
        # Most people who ask have no documents.
        services._let_documents_rest()
        return services

    def rest(self) -> None:
        """Let go of what is made, read or opened again at need: whoever comes back waits a little.

        Safe at any time, and cheap where nothing has been used since.
        """
        self.chat.rest()
        self._let_documents_rest()
        self.store.rest()

    def _let_documents_rest(self) -> None:
        documents = self.library.store
        if isinstance(documents, Index):
            documents.rest()

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
    use_prompts(settings)
    return _joined(settings, engine, make_embedder=make_embedder, progress=progress)


def _joined(
    settings: Settings,
    engine: Engine | None,
    *,
    make_embedder: MakeEmbedder | None = None,
    progress: Progress = ignore_progress,
    queue: ReplyQueue | None = None,
    store: Store | None = None,
    chunk_store: ChunkStore | None = None,
) -> Services:
    with ExitStack() as stack:
        make_private(settings.data_dir)
        store = store or open_store(settings)
        stack.callback(store.close)
        ready = engine or _open_engine(settings)
        stack.callback(ready.close)
        library = open_library(
            settings,
            lambda text: len(ready.tokenizer.encode(text)),
            make_embedder=make_embedder,
            progress=progress,
            store=chunk_store,
            chats=store,
        )
        stack.callback(library.close)
        chat = Chat(
            settings=settings,
            store=store,
            engine=ready,
            library=library,
            vectors=open_recall_vectors(settings, library),
            queue=queue,
        )
        stack.pop_all()
        return Services(settings, store, library, ready, chat)


def _open_engine(settings: Settings) -> SwitchingEngine:
    """The configured model, which can be exchanged for another; loads in the background."""
    return SwitchingEngine(settings, load=lambda to: load_engine(to), prepare=prepare_model)
