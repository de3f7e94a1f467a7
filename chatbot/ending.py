"""How the process ends once the command has: at once, and in order. Knows no command."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from typing import NoReturn


def end(code: int) -> NoReturn:
    """Leave with this exit code, whatever threads of libraries still do.

    All that is to be kept was closed by the command. A model that is still being loaded would
    hold up the end until it is there, or break it off in the midst of its C++ code (SIGABRT).
    """
    _flush_or_discard()
    if len(threading.enumerate()) > 1:
        atexit._run_exitfuncs()
        logging.shutdown()
        _flush_or_discard()
        os._exit(code)
    sys.exit(code)


def _flush_or_discard() -> None:
    """A reader that has gone away must not give a traceback when Python ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
