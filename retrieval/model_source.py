"""The way from a model's name to the loaded model, and what is said when it cannot be had. Knows
no vectors."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retrieval.types import ModelUnusableError

Find = Callable[[], str | Path]
"""Gives the folder of a model, fetched if need be. Raises ModelUnusableError."""
REST_S = 30.0
"""After a failure, so long none is tried again: a chat must not wait at each question."""


class ModelSource:
    """Where a model comes from. Not thread-safe: whoever loads it holds a lock of its own."""

    def __init__(self, name: str, find: Find | None = None) -> None:
        self.name = name
        self._find = find or (lambda: name)
        self._folder = ""
        self._rest_until = 0.0
        self._fault = ""

    def folder(self) -> str:
        """The model's folder, or its name. Raises ModelUnusableError where it cannot be had."""
        if time.monotonic() < self._rest_until:
            raise ModelUnusableError(self._fault)
        try:
            self._folder = self._folder or str(self._find())
        except ModelUnusableError as error:
            self._rest(str(error))
            raise
        return self._folder

    def loaded(self, load: Callable[[str], Any], *, otherwise: str) -> Any:
        """What `load` makes of the model's folder. Raises ModelUnusableError, with the sentence
        `otherwise` where it is there and cannot be loaded."""
        folder = self.folder()
        try:
            return load(folder)
        except (OSError, ValueError, RuntimeError) as error:
            self._rest(otherwise)
            raise ModelUnusableError(otherwise) from error

    def _rest(self, fault: str) -> None:
        self._fault = fault
        self._rest_until = time.monotonic() + REST_S


def identity(source: str) -> str:
    """A hub name as it is; a folder by its name and a hash over its settings and weights' sizes.

    Folders are often called alike, and vectors of different models must never be mixed.
    """
    folder = Path(source)
    if not folder.is_dir():
        return source
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json" and path.is_file():
            digest.update(path.read_bytes())
        elif path.suffix in {".safetensors", ".bin", ".onnx"} and path.is_file():
            digest.update(f"{path.name} {path.stat().st_size}".encode())
    return f"{folder.name}@{digest.hexdigest()}"
