"""The program under test for one sample: a chat in a data folder of its own.

Builds everything anew for each sample but what takes long: the model, and the index of the
documents of a case, which is copied.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType

from chatbot.chat import Chat, window_tokens
from chatbot.engine.base import Engine
from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.engine.lazy import LazyEngine
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import ChatbotError, ModelError
from chatbot.parts import build_embedder, load_engine
from chatbot.regression.digest import digest
from chatbot.regression.script import SuiteScript
from chatbot.regression.suite import SuiteDocument
from chatbot.regression.watched import WatchedEngine
from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.embed import Embedder, ScriptedEmbedder
from retrieval.pipeline import Library

SCRIPTED = "scripted"
"""Model and embedding model that need nothing: replies come from the suite."""
SCRIPTED_WINDOW_TOKENS = 131_072
_INGESTING = ("chunk_", "parser_", "max_upload_mb", "keep_running_lines", "embedding_model")
"""Beginnings of the settings that say what becomes of a document."""
MEMORY_FOLDER = Path("/dev/shm")
MEMORY_FOLDER_BYTES = 1 << 30
_SAMPLE_ONLY = (
    "data_dir", "host", "port", "language", "debug", "embedding_model", "reranker_model",
    "system_prompt", "prompts_dir", "reply_tokens", "temperature", "top_p", "repetition_penalty",
    "seed", "stop", "min_recent_turns", "passage_share", "top_k", "keep_running_lines",
    "max_upload_mb", "parser_", "chunk_", "summary", "fold_", "recall_", "window_tokens",
)  # fmt: skip
"""Beginnings of the settings for which the model need not be loaded again."""


class Workshop:
    """Keeps what samples share: the loaded model, the embedder, the ingested documents."""

    def __init__(self, *, progress: Progress = ignore_progress) -> None:
        self._progress = progress
        self._stack = ExitStack()
        self._folder = Path(
            self._stack.enter_context(
                tempfile.TemporaryDirectory(
                    prefix=f"chatbot-regress-{os.getpid()}-",
                    dir=_quick_folder(),
                    # A sample that was left behind may still write there.
                    ignore_cleanup_errors=True,
                )
            )
        )
        self._loaded: tuple[str, LazyEngine] | None = None
        self._embedders: dict[str, Embedder | None] = {}
        self._samples = 0

    def __enter__(self) -> Workshop:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the model and remove all folders."""
        if self._loaded is not None:
            self._loaded[1].close()
            self._loaded = None
        self._stack.close()

    def engine(self, settings: Settings, script: SuiteScript) -> Engine:
        """An engine for one sample; a real model is loaded once. Raises ModelError."""
        if settings.model == SCRIPTED:
            engine = ScriptedEngine(script, window_tokens=SCRIPTED_WINDOW_TOKENS)
            script.attach(engine)
            return engine
        return self.model(settings)

    def model(self, settings: Settings) -> Engine:
        """The real model of the settings, loaded if it is not there yet. Raises ModelError."""
        relevant = {
            k: v for k, v in settings.model_dump().items() if not k.startswith(_SAMPLE_ONLY)
        }
        key = repr(sorted(relevant.items()))
        if self._loaded is None or self._loaded[0] != key:
            if self._loaded is not None:
                self._loaded[1].close()
                self._loaded = None
            self._loaded = (key, load_engine(settings))
        engine = self._loaded[1]
        self._wait(engine)
        return engine

    def embedder(self, settings: Settings) -> Embedder | None:
        """The embedding model of the settings; keyword search only with a scripted model."""
        name = settings.embedding_model
        if name == SCRIPTED:
            return self._embedders.setdefault(name, ScriptedEmbedder(dimensions=512))
        if name == "none" or settings.model == SCRIPTED:
            return None
        if name not in self._embedders:
            self._embedders[name] = build_embedder(settings, progress=self._progress)
        return self._embedders[name]

    def target(
        self, settings: Settings, documents: Sequence[SuiteDocument], script: SuiteScript
    ) -> Target:
        """A fresh program with these documents in its library."""
        engine = self.engine(settings, script)
        embedder = self.embedder(settings)
        self._samples += 1
        folder = self._folder / f"sample-{self._samples}"
        shutil.copytree(self._prepared(settings, documents, engine, embedder), folder)
        return Target(folder, settings, engine, embedder)

    def _prepared(
        self,
        settings: Settings,
        documents: Sequence[SuiteDocument],
        engine: Engine,
        embedder: Embedder | None,
    ) -> Path:
        """A data folder without chats but with these documents, made once for all samples."""
        key = [
            [document.name for document in documents],
            [str(value) for name, value in settings if name.startswith(_INGESTING)],
            [engine.tokenizer.name, embedder.name if embedder else ""],
        ]
        folder = self._folder / f"ready-{digest(key, [d.path for d in documents])}"
        if folder.exists():
            return folder
        making = folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        with closing(Target(making, settings, engine, embedder, keep=True)) as target:
            for document in documents:
                ingest(target.library, document.path, document.name)
        making.rename(folder)
        return folder

    def _wait(self, engine: LazyEngine) -> None:
        while (status := engine.wait(0.2)).state == "loading":
            self._progress(status.message, status.progress)
        if status.state == "failed":
            raise ModelError(status.message)


def _quick_folder() -> Path | None:
    """Where files are kept in memory, if there is such a place: no sample must outlive its run."""
    if not os.access(MEMORY_FOLDER, os.W_OK):
        return None
    return MEMORY_FOLDER if shutil.disk_usage(MEMORY_FOLDER).free > MEMORY_FOLDER_BYTES else None


class Target:
    """The program in one data folder, which is removed with it unless `keep` is set."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        engine: Engine,
        embedder: Embedder | None,
        *,
        keep: bool = False,
    ) -> None:
        self._folder = folder
        self._keep = keep
        self.settings = settings.in_folder(folder)
        self.real_engine = engine
        self.engine = WatchedEngine(engine)
        self.embedder = embedder
        self._conversations: set[str] = set()
        self._services = self._build()

    def _build(self) -> Services:
        return build_services(
            self.settings, engine=self.engine, make_embedder=lambda settings: self.embedder
        )

    @property
    def store(self) -> Store:
        return self._services.store

    @property
    def library(self) -> Library:
        return self._services.library

    @property
    def chat(self) -> Chat:
        return self._services.chat

    def _shut(self) -> None:
        self._services.close()
        for conversation_id in self._conversations:
            self.real_engine.forget(conversation_id)

    def restart(self) -> None:
        """End the program and start it again on the same data."""
        self._shut()
        self._services = self._build()

    def close(self) -> None:
        """End the program and remove its data."""
        self._shut()
        if not self._keep:
            shutil.rmtree(self._folder, ignore_errors=True)

    def uses(self, conversation_id: str) -> None:
        """The engine may keep a cache for this conversation."""
        self._conversations.add(conversation_id)

    @property
    def window_tokens(self) -> int:
        return window_tokens(self.settings, self.engine)

    def similarity(self) -> Callable[[str, str], float]:
        """Cosine of two texts; by words alone where there is no embedding model."""
        embedder = self.embedder or ScriptedEmbedder(dimensions=512)

        def cosine(one: str, other: str) -> float:
            rows = embedder.embed_documents([one, other])
            return float(rows[0] @ rows[1])

        return cosine


def ingest(library: Library, path: Path, name: str) -> str:
    """The id of the document. Raises ChatbotError when it cannot be read."""
    report = library.ingest(path, name=name)
    if report.document_id is None:
        raise ChatbotError(f"The document {name!r} cannot be used: {report.message}")
    return report.document_id
