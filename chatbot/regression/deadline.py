"""A time limit that stops the reply that is being made. Knows no case."""

from __future__ import annotations

import threading
import time
from types import TracebackType


class TimeLimitError(Exception):
    """The time of a sample is up."""


class Deadline:
    """From its entry on, `limit_s` seconds; then the reply that is being made is stopped."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._timer = threading.Timer(limit_s, self._ring)
        self._timer.daemon = True
        self._stop: threading.Event | None = None
        self._end_s = 0.0
        self.over = threading.Event()

    def __enter__(self) -> Deadline:
        self._end_s = time.monotonic() + self.limit_s
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()

    @property
    def left_s(self) -> float:
        return max(0.0, self._end_s - time.monotonic())

    def watch(self, stop: threading.Event) -> None:
        """Set this event when the time is up."""
        self._stop = stop
        self.check()

    def check(self) -> None:
        """Raise TimeLimitError when the time is up."""
        if self.over.is_set():
            raise TimeLimitError(f"it took longer than {self.limit_s:g} s")

    def ring_now(self) -> None:
        """Give up at once: whoever waits for the sample will not wait any longer."""
        self._ring()

    def _ring(self) -> None:
        self.over.set()
        if self._stop is not None:
            self._stop.set()
