"""Who may change a conversation now: one reply, or one edit by hand. Knows no store, no model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from chatbot.errors import InputError

BEING_ANSWERED = "This conversation is still being answered; wait or stop it."
BEING_CHANGED = "This conversation is being changed elsewhere; try again in a moment."
EDIT_WAIT_S = 30.0


class Busy:
    """What happens in which conversation. Safe to use from many threads.

    A reply may take minutes, so whoever comes in its way is refused; an edit is soon over, so
    others wait for it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._replies: dict[str, threading.Event] = {}
        self._edits: set[str] = set()

    @contextmanager
    def reply(self, conversation_id: str, stop: threading.Event) -> Iterator[None]:
        """Answer in a conversation; `stop` ends it. Raises InputError while another reply runs."""
        with self._changed:
            self._enter(conversation_id)
            self._replies[conversation_id] = stop
        try:
            yield
        finally:
            with self._changed:
                del self._replies[conversation_id]
                self._changed.notify_all()

    @contextmanager
    def edit(self, conversation_id: str) -> Iterator[None]:
        """Change a conversation by hand. Raises InputError while a reply runs in it."""
        with self._changed:
            self._enter(conversation_id)
            self._edits.add(conversation_id)
        try:
            yield
        finally:
            with self._changed:
                self._edits.discard(conversation_id)
                self._changed.notify_all()

    def stop(self, conversation_id: str) -> None:
        """Ask the reply in a conversation to end, if there is one."""
        with self._changed:
            event = self._replies.get(conversation_id)
        if event is not None:
            event.set()

    def stop_all(self) -> None:
        """Ask all replies to end."""
        with self._changed:
            for event in self._replies.values():
                event.set()

    def is_answering(self, conversation_id: str) -> bool:
        with self._changed:
            return conversation_id in self._replies

    def wait(self, conversation_id: str, timeout_s: float) -> bool:
        """Wait until nothing happens in a conversation. False when the time is up first."""
        with self._changed:
            return self._changed.wait_for(
                lambda: conversation_id not in self._replies and conversation_id not in self._edits,
                timeout_s,
            )

    def _enter(self, conversation_id: str) -> None:
        if conversation_id in self._replies:
            raise InputError(BEING_ANSWERED)
        free = self._changed.wait_for(lambda: conversation_id not in self._edits, EDIT_WAIT_S)
        if not free:
            raise InputError(BEING_CHANGED)
        if conversation_id in self._replies:
            raise InputError(BEING_ANSWERED)
