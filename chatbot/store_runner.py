"""Names the process that makes a reply and tells whether it still lives. Knows no database."""

from __future__ import annotations

import os

import psutil

from chatbot.records import new_id

# The start of a process is worked out from the clock of the machine, which may be set meanwhile.
_SAME_START_S = 2.0


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
