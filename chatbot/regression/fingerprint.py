"""What a run tested, as far as it can change its outcome. Runs nothing."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import prompts
from chatbot.engine.models import locate
from chatbot.parts import use_prompts
from chatbot.records import to_plain
from chatbot.regression.digest import digest
from chatbot.regression.results import Fingerprint
from chatbot.regression.sampling import RunOptions
from chatbot.regression.suite import Suite
from chatbot.regression.suite_settings import NOT_IN_SUITES, merged_settings
from chatbot.regression.target import SCRIPTED, Workshop
from chatbot.settings import Settings

PACKAGES = ("torch", "transformers", "tokenizers", "bitsandbytes", "sentence-transformers",
            "faiss-cpu", "sqlalchemy")  # fmt: skip


def fingerprint(suite: Suite, options: RunOptions, workshop: Workshop) -> Fingerprint:
    """Of the run that these make. Loads the model, if there is one."""
    settings = merged_settings(options.base, dict(options.overrides))
    use_prompts(settings)
    engine = _engine_parts(settings, workshop)
    embedder = workshop.embedder(settings)
    return Fingerprint(
        model=settings.model,
        revision=engine.get("revision", ""),
        quantization=engine.get("quantization", settings.quantization),
        kv_cache=engine.get("kv_cache", settings.kv_cache_dtype),
        device=engine.get("device", "none"),
        prompts=_prompts(),
        embedder=embedder.name if embedder else "none",
        settings=_settings(settings),
        versions=_versions(),
        suite=suite.digest,
    )


def _engine_parts(settings: Settings, workshop: Workshop) -> dict[str, str]:
    if settings.model == SCRIPTED:
        return {}
    info = workshop.model(settings).info
    if settings.engine_url:
        # What the server does with the model is not known here.
        return {
            "revision": info.model,
            "quantization": "unknown",
            "kv_cache": "unknown",
            "device": info.device,
        }
    folder = locate(settings.model, cache_dir=settings.cache_dir).folder
    return {
        "revision": _revision(folder),
        "quantization": info.quantization,
        "kv_cache": str(info.details.get("kv_cache_dtype", settings.kv_cache_dtype)),
        "device": f"{info.device} {info.dtype}".strip(),
    }


def _revision(folder: Path) -> str:
    """The commit of a model from the hub; of others a hash of the configuration and file sizes.

    Weights have gigabytes: a change that keeps every size is not seen.
    """
    if folder.parent.name == "snapshots":
        return folder.name
    files = sorted(path for path in folder.iterdir() if path.is_file())
    small = [path for path in files if path.suffix == ".json"]
    return digest([[path.name, path.stat().st_size] for path in files], small)


def _prompts() -> str:
    """A hash of the prompt texts in use, also of those that are the user's own."""
    texts = {}
    for language in prompts.LANGUAGES:
        for name in prompts.names(language):
            blanks = {blank: f"{{{blank}}}" for blank in prompts.variables_of(name, language)}
            texts[f"{language}/{name}"] = prompts.load(name, language, **blanks)
    return digest(texts)


def _settings(settings: Settings) -> dict[str, Any]:
    """All settings but those of the machine."""
    plain: dict[str, Any] = to_plain(settings.model_dump(exclude=set(NOT_IN_SUITES)))
    return plain


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
