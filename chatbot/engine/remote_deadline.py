"""A question to a server that ends, however slowly the answer comes. Knows no server.

The time limits of connections are for silences: an answer that comes byte by byte never meets them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class OverdueError(Exception):
    """The time was up."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` gives or raises. Raises OverdueError when that takes longer: it is then left to
    itself, in a thread that no end of the program waits for."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # It is raised where the answer is waited for.
            answer.set_exception(error)

    threading.Thread(target=run, name="remote-question", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            raise
        raise OverdueError from None
