"""Turns that were read before, so that a long chat is not parsed anew for each question.

Knows no database: whoever reads asks for what is known and hands back what it found.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from chatbot.messages import Turn

KEPT_CONVERSATIONS = 8


@dataclass(frozen=True, slots=True)
class Known:
    """The turns of a conversation, and a text that is another one when they are others."""

    mark: str = ""
    turns: tuple[Turn, ...] = ()
    edits: int = 0
    """How often finished turns had been changed when they were read."""


class TurnCache:
    """The turns of the conversations that were used last. Safe to use from many threads.

    A turn changes only when its reply ends, so one of the same id and the same finish is the
    same. Who changes a turn otherwise says so with `forget`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._changes = 0

    def get(self, conversation_id: str) -> tuple[Known, int]:
        """What is known, and how many changes there were, to be handed to `keep`."""
        with self._lock:
            return self._known.get(conversation_id, Known()), self._changes

    def keep(self, conversation_id: str, known: Known, changes: int) -> None:
        """Remember this, unless something was changed since it was read."""
        with self._lock:
            if changes != self._changes:
                return
            self._known[conversation_id] = known
            self._known.move_to_end(conversation_id)
            while len(self._known) > KEPT_CONVERSATIONS:
                self._known.popitem(last=False)

    def clear(self) -> None:
        """Read everything anew next time."""
        with self._lock:
            self._changes += 1
            self._known.clear()

    def forget(self, conversation_id: str, turn_id: str | None = None) -> None:
        """Read a turn, or a conversation, anew next time."""
        with self._lock:
            self._changes += 1
            known = self._known.pop(conversation_id, None)
            if turn_id is not None and known is not None:
                others = tuple(turn for turn in known.turns if turn.id != turn_id)
                self._known[conversation_id] = Known("", others, known.edits)
