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
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> ctypes._FuncPointer | None:  # type: ignore[name-defined,unused-ignore]
    if not sys.platform.startswith("linux"):
        return None
    found: ctypes._FuncPointer | None = getattr(ctypes.CDLL(None), "malloc_trim", None)  # type: ignore[name-defined,unused-ignore]
    return found
