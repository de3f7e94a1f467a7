"""A question that was sent from a page, until it is part of its chat. Knows no widget."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from chatbot.errors import ChatbotError, StoreError
from chatbot.store import Store


class Sent:
    """Tells whether a question was stored, so that its text is never lost between box and chat."""

    def __init__(self, store: Store, conversation_id: str, text: str) -> None:
        """Made before the question is asked. Raises StoreError."""
        self._store = store
        self._conversation_id = conversation_id
        self._text = text
        self._before = self._newest()

    @property
    def left(self) -> str:
        """The text while it is in no turn; it belongs back into the box then."""
        try:
            return self._text if self._newest() == self._before else ""
        except StoreError:
            return self._text

    def keep(self) -> None:
        """For somebody who has closed the page: a turn without a reply, to be asked again."""
        # A chat that was deleted meanwhile, or a store that is away: there is no place for it.
        with suppress(ChatbotError):
            if self.left:
                turn = self._store.begin_turn(self._conversation_id, self._text, alone=True)
                self._store.finish_turn(self._conversation_id, replace(turn, finish="cancelled"))

    def _newest(self) -> str:
        newest = self._store.last_turns(self._conversation_id, 1)
        return newest[-1].id if newest else ""
