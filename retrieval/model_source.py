"""The way from a model's name to the loaded model, and what is said when it cannot be had. Knows
no vectors."""

from __future__ import annotations

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
        self._rest_until = 0.0
        self._fault = ""

    def loaded(self, load: Callable[[str], Any], *, otherwise: str) -> Any:
        """What `load` makes of the model's folder. Raises ModelUnusableError with the sentence
        `otherwise` where it cannot."""
        if time.monotonic() < self._rest_until:
            raise ModelUnusableError(self._fault)
        try:
            return load(str(self._find()))
        except ModelUnusableError as error:
            self._rest(str(error))
            raise
        except (OSError, ValueError, RuntimeError) as error:
            self._rest(otherwise)
            raise ModelUnusableError(otherwise) from error

    def _rest(self, fault: str) -> None:
        self._fault = fault
        self._rest_until = time.monotonic() + REST_S
