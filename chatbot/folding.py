"""Folding in the background: when it may run, and how it gives way. Knows no summary.

One worker thread takes conversations in turn; it ends when there are none for a while, since each
of hundreds of people has one. It works only while no reply wants the engine; a reply that comes in
between stops it, and the conversation is folded later. Until then the next turns simply recall what
they need.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from chatbot.errors import ChatbotError
from chatbot.reply_queue import ReplyQueue

log = logging.getLogger(__name__)

FoldOne = Callable[[str, threading.Event], bool]
"""Fold a conversation by one step; whether another is due. Gives up when the event is set."""

KEPT_S = 5.0
"""How long the worker stays with nothing to do."""


class Folding:
    """See the module. Safe to use from many threads; `close` ends the worker."""

    def __init__(self, queue: ReplyQueue, fold_one: FoldOne) -> None:
        self._queue = queue
        self._fold_one = fold_one
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._current: str | None = None
        self._stop = threading.Event()
        self._closed = False
        self._worker: threading.Thread | None = None

    def schedule(self, conversation_id: str) -> None:
        """Look soon whether this conversation needs a fold."""
        with self._changed:
            if self._closed:
                return
            self._waiting[conversation_id] = None
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="folding", daemon=True)
                self._worker.start()
            self._changed.notify_all()

    def cancel(self, conversation_id: str) -> bool:
        """Neither begin nor go on with this conversation; returns once that is so.

        Whether there was something to cancel.
        """
        with self._changed:
            cut_off = conversation_id in self._waiting or self._current == conversation_id
            self._waiting.pop(conversation_id, None)
            while self._current == conversation_id:
                self._stop.set()
                self._changed.wait()
            # It may have asked for another step before it stopped.
            self._waiting.pop(conversation_id, None)
            return cut_off

    def give_way(self) -> None:
        """Stop what runs, since a reply wants the engine; it is taken up again later."""
        with self._changed:
            if self._current is not None:
                self._waiting[self._current] = None
                self._stop.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is due or running. False when the time is up first."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._closed or not (self._waiting or self._current), timeout_s
            )

    def close(self) -> None:
        """Stop at once and end the worker. Idempotent."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._stop.set()
            self._changed.notify_all()
            worker = self._worker
        self._queue.forget(self._wake)
        if worker is not None and worker is not threading.current_thread():
            worker.join()

    def _work(self) -> None:
        while (conversation_id := self._next()) is not None:
            more = False
            try:
                more = self._fold_one(conversation_id, self._stop)
            except ChatbotError as error:
                # The turns are all still there: the next ones recall instead.
                log.warning("Folding failed: %s", error)
            except Exception:
                # A fault of ours in one conversation must not end the folding of all others.
                log.exception("Folding failed by a fault in the program.")
            finally:
                self._finish(conversation_id, more)

    def _next(self) -> str | None:
        with self._changed:
            while not self._closed:
                if self._waiting and self._queue.is_empty(otherwise=self._wake):
                    conversation_id, _ = self._waiting.popitem(last=False)
                    self._current = conversation_id
                    self._stop.clear()
                    return conversation_id
                # What waits is begun by `_wake`: looking again and again, as many workers as there
                # are people would keep a core busy.
                if not self._changed.wait(KEPT_S) and not self._waiting:
                    break
            self._worker = None
            return None

    def _wake(self) -> None:
        """Nobody wants the engine any more."""
        with self._changed:
            self._changed.notify_all()

    def _finish(self, conversation_id: str, more: bool) -> None:
        with self._changed:
            self._current = None
            if more and not self._closed:
                self._waiting[conversation_id] = None
            self._changed.notify_all()
