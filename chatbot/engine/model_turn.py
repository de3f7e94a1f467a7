"""Whose call of the model it is: one at a time, in turn, each of which can be stopped.

Knows no tokens. Replies that are made at once take turns call by call, so that they need the
working memory of one call only, and a model with a state of its own is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from chatbot.engine.fair_lock import FairLock


class Gate(Protocol):
    """Asks before each layer whether to go on."""

    def watch(self, stopped: Callable[[], bool]) -> None: ...

    def unwatch(self) -> None: ...


class NoGate:
    """Asks nobody, and holds no model."""

    def watch(self, stopped: Callable[[], bool]) -> None: ...

    def unwatch(self) -> None: ...


class ModelTurn:
    """See the module."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._lock = FairLock()

    @contextmanager
    def call(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """The model for one call, which ends with Stopped once `stopped` says so."""
        with self._lock.held():
            self._gate.watch(stopped)
            try:
                yield
            finally:
                self._gate.unwatch()
