"""Names who makes replies and tells whether it still lives: on one machine, by its process.

Knows no database. For processes of several machines see `store_leases`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import psutil
import sqlalchemy as sa

from chatbot.records import new_id

# The start of a process is worked out from the clock of the machine, which may be set meanwhile.
_SAME_START_S = 2.0


class Life(Protocol):
    """The names of those who work in a database, and which of them have died."""

    def name(self) -> str:
        """A fresh name for one that works in this process."""
        ...

    def dead(self, connection: sa.Connection, names: Sequence[str]) -> list[str]:
        """Those of the names behind which nobody lives any more."""
        ...

    def close(self) -> None:
        """This process works here no longer. Idempotent."""
        ...


class ProcessLife:
    """Of a database that only processes of this machine use."""

    def name(self) -> str:
        return runner_name()

    def dead(self, connection: sa.Connection, names: Sequence[str]) -> list[str]:
        return [name for name in names if not runner_lives(name)]

    def close(self) -> None:
        """The end of a process shows by itself."""


def runner_name() -> str:
    """A name for the caller: process id, start of the process, and one store in it.

    The start tells a process from a later one with the same id.
    """
    return f"{os.getpid()}:{psutil.Process().create_time():.3f}:{new_id()}"


def runner_lives(name: str) -> bool:
    """Whether the process behind a name is still running; True when that cannot be found out.

    A wrong answer does no lasting harm: a turn marked as interrupted by mistake is put right when
    its process finishes it.
    """
    try:
        number, start, _ = name.split(":")
        process = psutil.Process(int(number))
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(process.create_time() - float(start)) < _SAME_START_S
    except (psutil.NoSuchProcess, ValueError):
        return False
    except psutil.AccessDenied:
        return True
