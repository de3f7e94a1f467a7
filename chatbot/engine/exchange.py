"""What others may know of exchanging the model while the program runs. Knows no engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Literal, Protocol, runtime_checkable

from chatbot.engine.base import Engine
from chatbot.settings import Settings

Phase = Literal["preparing", "ending", "loading", "restoring", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Switch:
    """How an exchange of the model stands."""

    model: str
    phase: Phase = "preparing"
    message: str = ""
    """What happens, or why it failed: one sentence."""
    progress: float | None = None
    """The share done of the phase, in [0, 1], where it is known."""

    @property
    def is_running(self) -> bool:
        return self.phase not in ("done", "failed")


@runtime_checkable
class Exchangeable(Protocol):
    """An engine whose model can be exchanged."""

    @property
    def switch(self) -> Switch | None:
        """The exchange that runs, or else the last one."""
        ...

    def switch_to(self, settings: Settings, done: Callable[[Settings | None], None]) -> bool:
        """Exchange the model for that of `settings`, in the background; False while one runs.

        `done` is called at the end: with the settings in use from then on, or with None when the
        old model is in use again.
        """
        ...


@runtime_checkable
class _Usable(Protocol):
    def use(self, stop: Event | None = None) -> AbstractContextManager[None]: ...


@contextmanager
def in_use(engine: Engine, stop: Event | None = None) -> Iterator[None]:
    """Keep the model that an engine has until the block is left, since a prompt fits one only.

    Waits while models are exchanged; raises InputError if `stop` is set meanwhile.
    """
    if isinstance(engine, _Usable):
        with engine.use(stop):
            yield
    else:
        yield
