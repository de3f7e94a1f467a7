"""What this process takes of the machine's memory, now and at its peak; knows no models."""

from __future__ import annotations

import ctypes
import re
import sys
from functools import cache
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_RESET_PEAK = "5"
_ARENA_MAX = -8
"""M_ARENA_MAX of malloc.h."""


def process_bytes() -> int:
    """Bytes of this process that are in memory now."""
    return int(psutil.Process().memory_info().rss)


def process_peak_bytes() -> int:
    """The most that was in memory since `reset_peak`, or since the start; 0 where unknown."""
    try:
        match = _PEAK.search(_STATUS.read_text(encoding="ascii", errors="replace"))
    except OSError:  # not Linux
        return 0
    return int(match[1]) * 1024 if match else 0


def reset_peak() -> bool:
    """Let the peak start anew from what is in memory now. False where that cannot be done."""
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:  # not Linux, or not allowed
        return False
    return True


def give_back_freed() -> None:
    """Hand memory that was freed but is still held by the C library back to the machine.

    Large blocks are returned by themselves only until the library has seen some freed; after
    that it keeps up to 32 MiB of each. A few milliseconds; does nothing but under glibc.
    """
    trim = _of_c_library("malloc_trim")
    if trim is not None:
        trim(0)


def share_one_arena() -> None:
    """Let all threads allocate from one place in memory, which `give_back_freed` can shrink.

    The C library gives threads places of their own and keeps up to 64 MiB at the end of each:
    with a thread for each reply, the process grew by 0.25 % a turn, and by nothing with one place.
    Holds for threads that begin after it; does nothing but under glibc.
    """
    choose = _of_c_library("mallopt")
    if choose is not None and _of_c_library("malloc_trim") is not None:
        choose(_ARENA_MAX, 1)


@cache
def _of_c_library(name: str) -> ctypes._FuncPointer | None:  # type: ignore[name-defined,unused-ignore]
    if not sys.platform.startswith("linux"):
        return None
    found: ctypes._FuncPointer | None = getattr(ctypes.CDLL(None), name, None)  # type: ignore[name-defined,unused-ignore]
    return found
