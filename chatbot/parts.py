"""Makes each single part of the program from the settings; `chatbot.services` joins them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import prompts
from chatbot.engine import models
from chatbot.engine.again import Again, server_may_come
from chatbot.engine.base import ChatTokenizer, Engine
from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.side_models import RANKING, VECTORS, Purpose, locate_side_model
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.errors import ModelError, SettingsError, StoreError
from chatbot.recall_vectors import RecallVectors
from chatbot.settings import Settings
from chatbot.store import Store
from chatbot.upload_claims import claim_uploads
from retrieval.chunk_store import ChunkStore
from retrieval.embed import Embedder, SentenceTransformerEmbedder
from retrieval.load import LoadLimits
from retrieval.milvus_index import open_milvus_index
from retrieval.missing import needs_package
from retrieval.pipeline import Library
from retrieval.rerank import CrossEncoderReranker, Reranker
from retrieval.slow_imports import SLOW_IMPORTS
from retrieval.types import CountTokens, ModelUnusableError

MIB = 1 << 20
MAX_PAGES = 5_000
CATALOGUE_FILE = "catalogue.db"
"""Beside `index.db` in the folder of the library, where chunks and vectors are in Milvus."""
MakeEmbedder = Callable[[Settings], Embedder | None]


def make_private(folder: Path) -> None:
    """Create the data folder, readable for its owner only. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(
            f"The data folder {folder} cannot be made ({error.strerror}); set --data-dir to "
            "another one."
        ) from error


def open_store(settings: Settings) -> Store:
    """The conversations: in the data folder, or where --database-url says. Raises StoreError."""
    make_private(settings.data_dir)
    if settings.database_url is None:
        return Store(settings.data_dir / "chats.db")
    return Store(settings.database_url.get_secret_value())


def use_prompts(settings: Settings) -> None:
    """Take the user's own prompt texts, if there are any. Raises SettingsError."""
    try:
        prompts.use_folder(settings.prompts_dir)
    except prompts.PromptError as error:
        raise SettingsError(str(error)) from error


def load_engine(settings: Settings) -> LazyEngine:
    """The configured model; loads in the background from now on.

    A server that is away is looked for until it is there. Files of a model stay what they are.
    """

    def load(handle: LoadHandle) -> Engine:
        # Seconds of imports, which the page need not wait for.
        if settings.engine_url:
            return _connected(settings, handle)
        with SLOW_IMPORTS:
            from chatbot.engine.local import load_engine

        return load_engine(settings, handle)

    if settings.engine_url:
        return LazyEngine(load, message="Looking for the server.", again=Again(server_may_come))
    return LazyEngine(load)


def _connected(settings: Settings, handle: LoadHandle) -> Engine:
    try:
        with SLOW_IMPORTS:
            from chatbot.engine.remote import connect
    except ModuleNotFoundError as error:
        raise ModelError(needs_package("--engine-url", str(error.name))) from error
    return connect(settings, handle)


def prepare_model(settings: Settings, progress: Progress = ignore_progress) -> None:
    """Get the files of the configured model without loading it. Raises ModelError."""
    if settings.engine_url:
        return
    with SLOW_IMPORTS:
        from chatbot.engine.loading import check_architecture
    known = models.read_config(settings.model, cache_dir=settings.cache_dir)
    check_architecture(settings.model, known.config)
    models.locate(settings.model, cache_dir=settings.cache_dir, progress=progress)


def load_model_tokenizer(
    settings: Settings, *, progress: Progress = ignore_progress
) -> ChatTokenizer:
    """The tokenizer of the settings, or else of the configured model, without any weights."""
    if settings.tokenizer is not None:
        return load_tokenizer(settings.tokenizer)
    return load_tokenizer(
        models.locate_tokenizer(settings.model, cache_dir=settings.cache_dir, progress=progress)
    )


def build_embedder(settings: Settings, *, progress: Progress = ignore_progress) -> Embedder | None:
    """The embedding model of the settings; it is read at its first use."""
    if settings.embedding_model == "none":
        return None
    name = settings.embedding_model
    source = models.locate_embedder(name, cache_dir=settings.cache_dir, progress=progress)
    if isinstance(source, Path):
        return SentenceTransformerEmbedder(source)
    return SentenceTransformerEmbedder(source, find=lambda: _side_model(name, VECTORS, progress))


def build_reranker(settings: Settings, *, progress: Progress = ignore_progress) -> Reranker | None:
    """The cross-encoder of the settings, if there is one; it is read at its first use."""
    name = settings.reranker_model
    if name == "none":
        return None
    return CrossEncoderReranker(name, find=lambda: _side_model(name, RANKING, progress))


def _side_model(name: str, purpose: Purpose, progress: Progress) -> Path:
    try:
        return locate_side_model(name, purpose, progress=progress)
    except ModelError as error:
        raise ModelUnusableError(str(error)) from error


def count_with(tokenizer: ChatTokenizer) -> CountTokens:
    """The function that tells how many tokens a text has."""
    return lambda text: len(tokenizer.encode(text))


def open_recall_vectors(settings: Settings, library: Library) -> RecallVectors | None:
    """The vectors of old turns, made by the library's model; None where there are to be none."""
    if library.embedder is None or settings.recall_vectors == "off" or settings.recall_share <= 0:
        return None
    return RecallVectors(library.embedder, settings.data_dir / "recall.db")


def open_library(
    settings: Settings,
    count_tokens: CountTokens,
    *,
    make_embedder: MakeEmbedder | None = None,
    progress: Progress = ignore_progress,
    store: ChunkStore | None = None,
    chats: Store | None = None,
) -> Library:
    """The documents of the data folder. `make_embedder` may give one that is loaded already.

    `store` is where chunks and vectors are; None: where the settings say. With `chats`, other
    processes at its database take in no file at the same time.
    """
    make = make_embedder or (lambda settings: build_embedder(settings, progress=progress))
    limits = LoadLimits(
        max_bytes=settings.max_upload_mb * MIB,
        timeout_s=settings.parser_timeout_s,
        memory_bytes=settings.parser_memory_mb * MIB,
        max_pages=MAX_PAGES,
    )
    embedder = make(settings)
    folder = settings.data_dir / "library"
    own = None if settings.vector_url else folder
    return Library(
        folder,
        embedder=embedder,
        count_tokens=count_tokens,
        chunk_min_tokens=settings.chunk_min_tokens,
        chunk_max_tokens=settings.chunk_max_tokens,
        limits=limits,
        remove_running_lines=not settings.keep_running_lines,
        reranker=build_reranker(settings, progress=progress),
        store=store or open_chunk_store(settings, embedder),
        claim=claim_uploads(chats, own) if chats is not None else None,
    )


def open_chunk_store(settings: Settings, embedder: Embedder | None) -> ChunkStore | None:
    """The place for chunks and vectors by `--vector-url`; None where they are in the data folder.

    Which documents there are is then in the team's database, or in a file of the data folder.
    """
    if settings.vector_url is None:
        return None
    url = settings.vector_url.get_secret_value()
    name = embedder.name if embedder else ""
    return open_milvus_index(url, catalogue_location(settings), embedder=name)


def catalogue_location(settings: Settings) -> Path | str:
    """Where the list of documents is whose chunks and vectors are in Milvus; makes its folder."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    folder = settings.data_dir / "library"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / CATALOGUE_FILE
