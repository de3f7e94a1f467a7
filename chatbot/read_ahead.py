"""Reads a chat that was opened before its first question comes. Knows no prompt and no store.

What is built then - the index of old turns, their facts, the sizes of their pieces - takes seconds
in a long chat, which the first reply would have to wait for.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from chatbot.errors import ChatbotError

log = logging.getLogger(__name__)

MOST_AT_ONCE = 2


class ReadAhead:
    """Calls `read` in the background for chats that are opened, once each. Safe for threads."""

    def __init__(self, read: Callable[[str], None]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._done: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def request(self, conversation_id: str) -> None:
        """Begin with a chat, unless it was read already or others are being read."""
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if self._closed or conversation_id in self._done or len(self._threads) >= MOST_AT_ONCE:
                return
            self._done.add(conversation_id)
            thread = threading.Thread(
                target=self._run, args=(conversation_id,), name="read-ahead", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def wait(self) -> None:
        """Wait until nothing is being read."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """Begin with nothing more, and wait for what was begun. Idempotent."""
        with self._lock:
            self._closed = True
        self.wait()

    def _run(self, conversation_id: str) -> None:
        try:
            self._read(conversation_id)
        except ChatbotError as error:
            # The chat may be gone by now; its first question, if there is one, will tell.
            log.debug("A chat was not read ahead: %s", error)
            with self._lock:
                self._done.discard(conversation_id)
