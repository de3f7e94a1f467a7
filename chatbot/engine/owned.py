"""One person's view of an engine that several people share. Knows no person's chats.

Caches are kept under the person's name as well, so that a chat with an id that someone else's chat
has, too (after an import, say), neither reuses nor drops that one's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

from chatbot.engine.around import SharedEngine
from chatbot.engine.base import Engine, EngineEvent, Finished, SamplingParams
from chatbot.messages import MemoryFigures


class OwnedEngine(SharedEngine[Engine]):
    """Passes everything on; `close` leaves the shared engine to who opened it."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """`owner` must not hold a slash."""
        super().__init__(engine)
        self._front = f"{owner}/"

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
        mine = None if conversation_id is None else self._front + conversation_id
        events = super().generate(
            prompt_ids, params, conversation_id=mine, stop=stop, ladder=ladder
        )
        for event in events:
            yield self._own(event)

    def forget(self, conversation_id: str) -> None:
        super().forget(self._front + conversation_id)

    def memory(self) -> MemoryFigures:
        """The whole machine, but only the person's own chats by name."""
        return self._shown(super().memory())

    def _own(self, event: EngineEvent) -> EngineEvent:
        if not isinstance(event, Finished) or event.usage.memory is None:
            return event
        usage = replace(event.usage, memory=self._shown(event.usage.memory))
        return replace(event, usage=usage)

    def _shown(self, figures: MemoryFigures) -> MemoryFigures:
        mine = {
            name.removeprefix(self._front): taken
            for name, taken in figures.kv_by_conversation.items()
            if name.startswith(self._front)
        }
        return replace(figures, kv_by_conversation=mine)
