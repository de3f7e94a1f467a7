"""Tokenizers on this machine for a model that is on another: by name, or by tiktoken."""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import tiktoken

from chatbot.engine import models
from chatbot.engine.base import ChatTokenizer
from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.engine.llama3_tokenizer import load_llama3
from chatbot.engine.model_figures import figures_of
from chatbot.engine.remote_server import ServerFacts
from chatbot.engine.remote_ways import Counter
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.errors import ChatbotError
from chatbot.settings import Settings

log = logging.getLogger(__name__)

_LLAMA3 = re.compile(r"llama-?3", re.IGNORECASE)
_LLAMA3_FILE = Path("llama3") / "tokenizer.model"


def local_tokenizer(
    settings: Settings, facts: ServerFacts, *, progress: Progress = ignore_progress
) -> ChatTokenizer | None:
    """The tokenizer of the settings, or that of the served model by its name; None: none found.

    Raises TokenizerError or ModelError only for the one that the settings name.
    """
    if settings.tokenizer is not None:
        if Path(settings.tokenizer).expanduser().exists():
            return load_tokenizer(settings.tokenizer)
        folder = models.locate_tokenizer(
            settings.tokenizer, cache_dir=settings.cache_dir, progress=progress
        )
        return load_tokenizer(folder)
    for name in _names(facts):
        try:
            return load_tokenizer(models.locate_tokenizer(name, cache_dir=settings.cache_dir))
        except (ChatbotError, OSError) as error:
            log.info("No tokenizer of %s on this machine: %s", name, error)
    return _llama3(facts)


def local_context(settings: Settings, facts: ServerFacts) -> int:
    """The length that the configuration of the served model names; 0 where it is not to be had."""
    for name in _names(facts):
        try:
            found = models.read_config(name, cache_dir=settings.cache_dir)
            return figures_of(found.config).window_tokens
        except (ChatbotError, OSError) as error:
            log.info("No configuration of %s on this machine: %s", name, error)
    return 0


def tiktoken_counters(facts: ServerFacts) -> Iterator[Counter]:
    """OpenAI's vocabulary for its models; it is fetched at its first use."""
    try:
        encoding = tiktoken.encoding_for_model(facts.model)
    except KeyError:
        return
    except (OSError, ValueError) as error:  # no network, or a damaged file
        log.info("OpenAI's vocabulary cannot be fetched: %s", error)
        return
    yield Counter("tiktoken", lambda text: len(encoding.encode_ordinary(text)))


def _names(facts: ServerFacts) -> Iterator[str]:
    """Names that may be a folder, a file or a hub name here."""
    for name in (facts.root, facts.model):
        if not name or name == models.DEMO:
            continue
        try:
            models.kind_of(name)
        except ChatbotError:
            continue
        yield name


def _llama3(facts: ServerFacts) -> ChatTokenizer | None:
    """Llama 3's own file, where its package is installed."""
    if not _LLAMA3.search(f"{facts.model} {facts.root or ''}"):
        return None
    found = importlib.util.find_spec("llama_models")
    for folder in (found.submodule_search_locations or []) if found else []:
        file = Path(folder) / _LLAMA3_FILE
        if file.is_file():
            return load_llama3(file)
    return None
