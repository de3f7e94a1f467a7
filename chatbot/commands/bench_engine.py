"""The real engine for measurements, with its model at hand and no chats of the user in sight."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.commands.bench_watch import LoadLines
from chatbot.console import Console
from chatbot.engine.base import Engine
from chatbot.engine.loading import LoadedModel, load_files, load_model
from chatbot.engine.local import TransformersEngine
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.services import Services, build_services
from chatbot.settings import Settings


@dataclass(frozen=True, slots=True)
class OpenEngine:
    """An engine and the model inside it."""

    engine: TransformersEngine
    model: Any
    loaded: LoadedModel


def open_engine(settings: Settings, console: Console) -> OpenEngine:
    """Load the configured model. Raises ModelError as `load_engine` does."""
    report = LoadLines(console)
    files, plan = load_files(settings, report)
    tokenizer = load_tokenizer(files.folder)
    loaded = load_model(settings, files, plan, report)
    return OpenEngine(TransformersEngine(loaded, tokenizer), loaded.model, loaded)


@contextmanager
def own_services(settings: Settings, wrap: Callable[[Settings], Engine]) -> Iterator[Services]:
    """The whole program in a data folder of its own, deleted at the end."""
    with tempfile.TemporaryDirectory() as folder:
        own = settings.in_folder(Path(folder)).model_copy(update={"embedding_model": "none"})
        services = build_services(own, engine=wrap(own))
        try:
            yield services
        finally:
            services.close()
