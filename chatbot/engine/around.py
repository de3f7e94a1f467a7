"""What all engines that stand before another one share: everything is handed on to it.

Knows nothing of why one stands there; who comes after it overrides what is to be otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Generic, TypeVar

from chatbot.engine.base import (
    ChatTokenizer,
    Engine,
    EngineEvent,
    EngineInfo,
    EngineStatus,
    SamplingParams,
)
from chatbot.engine.exchange import in_use
from chatbot.engine.reach import Reach, reach_of
from chatbot.messages import MemoryFigures

E = TypeVar("E", bound=Engine)


class EngineAround(Generic[E]):
    """See the module."""

    def __init__(self, engine: E) -> None:
        self.engine = engine

    @property
    def info(self) -> EngineInfo:
        return self.engine.info

    @property
    def tokenizer(self) -> ChatTokenizer:
        return self.engine.tokenizer

    @property
    def status(self) -> EngineStatus:
        return self.engine.status

    @contextmanager
    def use(self, stop: Event | None = None) -> Iterator[None]:
        """Keep the model as it is until the block is left; see `exchange.in_use`."""
        with in_use(self.engine, stop):
            yield

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        """See `Engine.generate`."""
        return self.engine.generate(
            prompt_ids, params, conversation_id=conversation_id, stop=stop, ladder=ladder
        )

    def forget(self, conversation_id: str) -> None:
        """See `Engine.forget`."""
        self.engine.forget(conversation_id)

    def memory(self) -> MemoryFigures:
        """See `Engine.memory`."""
        return self.engine.memory()

    def reach(self) -> Reach:
        """See `Distant.reach`."""
        return reach_of(self.engine)

    def close(self) -> None:
        """Close the engine behind it too."""
        self.engine.close()


class SharedEngine(EngineAround[E]):
    """One that others may use as well, so that `close` leaves it open."""

    def close(self) -> None:
        """Nothing: whoever opened the engine behind it closes it."""
