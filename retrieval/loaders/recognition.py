"""Text recognition (OCR) of pictures by the program tesseract, if it is installed. Knows no PDF."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import subprocess
from typing import Any

from retrieval.types import LoadError

DOTS_PER_INCH = 300
LANGUAGES = ("kor", "eng")
INSTALL = (
    "install the program tesseract with its Korean and English data (on Debian and Ubuntu: "
    "tesseract-ocr tesseract-ocr-kor)"
)
OVERTIME_S = 5.0
"""The parser's process ends itself so long after the caller would have ended it."""
PAGE_S = 60.0
_RESERVE_S = 3.0
# Pages with a line or two are empty to the usual look for columns, not to that for one block.
_LAYOUTS: tuple[tuple[str, ...], ...] = ((), ("--psm", "6"))


@functools.cache
def languages() -> str:
    """The languages that can be recognised, as tesseract wants them; "" without tesseract."""
    if shutil.which("tesseract") is None:
        return ""
    listed = _run(["tesseract", "--list-langs"], PAGE_S).split()
    return "+".join(one for one in LANGUAGES if one in listed)


def recognise(picture: Any) -> str | None:
    """The text of a picture (a PIL image at about 300 dots an inch); None when time is short.

    Raises LoadError when tesseract fails.
    """
    png = _png(picture)
    for layout in _LAYOUTS:
        left_s = _left_s()
        if left_s <= 0:
            return None
        command = ["tesseract", "stdin", "stdout", "-l", languages(), "--dpi", str(DOTS_PER_INCH)]
        try:
            text = _run([*command, *layout], min(left_s, PAGE_S), picture=png).strip()
        except subprocess.TimeoutExpired:
            return None
        if text:
            return text
    return ""


def _left_s() -> float:
    """Seconds until this process is ended by its own clock, which the parser's process sets."""
    with contextlib.suppress(ImportError, AttributeError):
        import signal

        left_s, _ = signal.getitimer(signal.ITIMER_REAL)
        if left_s:
            return left_s - OVERTIME_S - _RESERVE_S
    return PAGE_S


def _png(picture: Any) -> bytes:
    made = io.BytesIO()
    picture.save(made, format="PNG", compress_level=1)
    return made.getvalue()


def _run(command: list[str], timeout_s: float, picture: bytes = b"") -> str:
    # One thread: several only get into each other's way on a page.
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    done = subprocess.run(
        command, input=picture, capture_output=True, timeout=timeout_s, env=environment, check=False
    )
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise LoadError(f"Text recognition failed ({reason[:200]}).")
    return done.stdout.decode("utf-8", "replace")
