"""Turns that were read before, so that a long chat is not parsed anew for each question.

Knows no database: whoever reads asks for what is known and hands back what it found.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from chatbot.messages import Turn

KEPT_CONVERSATIONS = 8


class TurnCache:
    """The turns of the conversations that were used last. Safe to use from many threads.

    A turn changes only when its reply ends, so one of the same id and the same finish is the
    same. Who changes a turn otherwise says so with `forget`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[str, Mapping[str, Turn]] = OrderedDict()
        self._changes = 0

    def known(self, conversation_id: str) -> tuple[Mapping[str, Turn], int]:
        """Turns by id, and a mark to hand to `keep`."""
        with self._lock:
            return self._turns.get(conversation_id, {}), self._changes

    def keep(self, conversation_id: str, turns: Sequence[Turn], mark: int) -> None:
        """Remember exactly these turns, unless something was forgotten since the mark."""
        with self._lock:
            if mark != self._changes:
                return
            self._turns[conversation_id] = {turn.id: turn for turn in turns}
            self._turns.move_to_end(conversation_id)
            while len(self._turns) > KEPT_CONVERSATIONS:
                self._turns.popitem(last=False)

    def forget(self, conversation_id: str, turn_id: str | None = None) -> None:
        """Read a turn, or a conversation, anew next time."""
        with self._lock:
            self._changes += 1
            turns = dict(self._turns.pop(conversation_id, {}))
            if turn_id is not None and turns:
                turns.pop(turn_id, None)
                self._turns[conversation_id] = turns
