"""Logs as lines of JSON that hold no text of users, documents or models.

Of a message of ours only its pattern is written, which stands in the source, and of what is put
into it only numbers; of an error only its kind and the places in the code. What other libraries
say is not written at all, since they put texts into their patterns.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, TextIO

from chatbot.tally import FIELDS

OURS = ("chatbot", "retrieval")
LEFT_OUT = "…"


class JsonFormatter(logging.Formatter):
    """One line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        is_ours = record.name.partition(".")[0] in OURS
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "part": record.name,
            "event": _event(record) if is_ours else LEFT_OUT,
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def log_json(stream: TextIO) -> None:
    """Write every record of the process to `stream` in this form from now on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)


def _event(record: logging.LogRecord) -> str:
    args = record.args
    if not isinstance(args, tuple):
        return str(record.msg)
    shown = tuple(_shown(value) for value in args)
    try:
        return str(record.msg) % shown if shown else str(record.msg)
    except (TypeError, ValueError):
        return str(record.msg)


def _shown(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    return f"({type(value).__name__})" if isinstance(value, BaseException) else LEFT_OUT


def _places(error: BaseException) -> dict[str, Any]:
    """The kind of an error and of what caused it, and where it was raised; not what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{PurePath(f.filename).name}:{f.lineno} {f.name}" for f in frames]
    cause = error.__cause__ or error.__context__
    found: dict[str, Any] = {"kind": type(error).__name__, "places": places}
    if cause is not None:
        found["cause"] = type(cause).__name__
    return found
