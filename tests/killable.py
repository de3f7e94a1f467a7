"""Processes for tests to kill. Each begins in milliseconds: it is forked from one that has imported
the program once, since a kill takes a moment and an interpreter with its imports seconds."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from typing import Any

IMPORTED = (
    "chatbot.engine.scripted",
    "chatbot.regression.runner",
    "chatbot.store",
    "retrieval.pipeline",
)
START_S = 60.0


class Child:
    """A process that runs a function of a connection, and what is said to it and by it."""

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*IMPORTED])
        self._ours, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=work, args=(theirs, *arguments))
        self.process.start()
        # The end of the process is then the end of what it says.
        theirs.close()

    def say(self, *words: object) -> None:
        self._ours.send(words)

    def hear(self) -> Any:
        """What it says next. Raises EOFError at its end."""
        assert self._ours.poll(START_S), "it says nothing"
        return self._ours.recv()

    def kill(self) -> list[Any]:
        """Kill it; what it had said by then."""
        self.process.kill()
        said = []
        # A last word may have been cut in the middle.
        with suppress(EOFError, OSError):
            while True:
                said.append(self.hear())
        self.process.join()
        return said

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self._ours.close()


@contextmanager
def child(work: Callable[..., None], *arguments: object) -> Iterator[Child]:
    """A process that is gone afterwards, whatever happens."""
    begun = Child(work, *arguments)
    try:
        yield begun
    finally:
        begun.close()
