"""Results on stdout, everything else on stderr, both UTF-8. Knows no command."""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any, TextIO


class Console:
    """Where a command writes. Keeps its own stdout, so that stray prints can be sent elsewhere."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self._progress_shown = False
        self._said = ""

    @classmethod
    def of_process(cls) -> Console:
        """The real streams. A lone surrogate (a damaged file name) becomes a JSON-safe escape."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        return cls(sys.stdout, sys.stderr)

    def json(self, value: Mapping[str, Any]) -> None:
        """One result as one line of JSON."""
        self.clear_progress()
        print(json.dumps(value, ensure_ascii=False), file=self.out, flush=True)

    def result(self, text: str = "", *, end: str = "\n") -> None:
        """A result, or a piece of one, for people."""
        self.clear_progress()
        print(text, end=end, file=self.out, flush=True)

    def note(self, text: str) -> None:
        """Something worth knowing that is not the result."""
        self.clear_progress()
        print(_readable(text), file=self.err, flush=True)

    def progress(self, text: str) -> None:
        """A passing state: overwrites itself on a terminal, is not shown elsewhere."""
        if self.err.isatty():
            self.clear_progress()
            print(text[:100], end="", file=self.err, flush=True)
            self._progress_shown = True

    def model_progress(self, message: str, share: float | None = None) -> None:
        """How far a model is. On a terminal in place; elsewhere each new sentence once."""
        if self.err.isatty():
            percent = "" if share is None else f" {share:.0%}"
            self.progress(f"{message}{percent}")
        elif message and message != self._said:
            self._said = message
            self.note(message)

    def clear_progress(self) -> None:
        if self._progress_shown:
            print("\r\x1b[K", end="", file=self.err, flush=True)
            self._progress_shown = False


def _readable(text: str) -> str:
    """A file name in the bytes of another locale, as the UTF-8 that it most likely is."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeError:
        return text


def quiet_libraries(debug: bool) -> None:
    """Keep reports to other machines off, and bars and warnings of libraries off the terminal.

    Must run before the libraries are imported. What a person set in the environment stays.
    """
    private = {
        "DO_NOT_TRACK": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    quiet = {
        "BITSANDBYTES_NOWELCOME": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TQDM_DISABLE": "1",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    for name, value in (private if debug else private | quiet).items():
        os.environ.setdefault(name, value)
    if not debug:
        warnings.filterwarnings("ignore")
