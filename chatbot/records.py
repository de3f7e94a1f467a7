"""Conversation data to JSON text and back; fresh ids and times. Knows no database and no file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import numbers
import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from chatbot.messages import (
    Fact,
    FoldDecision,
    Message,
    Notice,
    PromptTrace,
    RollingSummary,
    Usage,
)
from retrieval.types import Citation

T = TypeVar("T")

MESSAGES = TypeAdapter(tuple[Message, ...])
CITATIONS = TypeAdapter(tuple[Citation, ...])
CITATION = TypeAdapter(Citation)
NOTICES = TypeAdapter(tuple[Notice, ...])
TEXTS = TypeAdapter(tuple[str, ...])
TOKEN_IDS = TypeAdapter(tuple[int, ...])
USAGE = TypeAdapter(Usage)
FACTS = TypeAdapter(tuple[Fact, ...])
TRACE = TypeAdapter(PromptTrace)
SUMMARY = TypeAdapter(RollingSummary)
FOLD_DECISION = TypeAdapter(FoldDecision)
FOLD_DECISIONS = TypeAdapter(tuple[FoldDecision, ...])
ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)

# A lone surrogate is no character and cannot be written as UTF-8; NUL ends a text early in LIKE
# and is refused by PostgreSQL.
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")


class RecordError(ValueError):
    """A stored text is not the record that it should be; says which part. Never for users."""


def storable(text: str) -> str:
    """The same text with every lone surrogate and NUL replaced by U+FFFD, so that it shows.

    Surrogates that make a pair are joined to the character that they stand for.
    """
    if not _UNSTORABLE.search(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _UNSTORABLE.sub("\ufffd", joined)


def to_plain(value: Any) -> Any:
    """Nested dataclasses and tuples as dicts and lists, ready for JSON, all texts storable.

    Raises TypeError for other values: written as something else, they could not be read again.
    """
    if isinstance(value, str):
        return storable(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {storable(str(key)): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, numbers.Integral):  # Other libraries' numbers, as in token ids.
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, PurePath):
        return storable(str(value))
    message = f"{type(value).__name__} cannot be stored as JSON"
    raise TypeError(message)


def to_json(value: Any) -> str:
    """One line of JSON for anything that `to_plain` takes."""
    return json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))


def to_json_or_none(value: Any) -> str | None:
    """None for what is absent or empty, so that most columns of a turn take no room."""
    return None if value is None or value == () else to_json(value)


def from_json(adapter: TypeAdapter[T], text: str) -> T:
    """Inverse of `to_json`. Raises RecordError when the text is not such a record."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "record"
        raise RecordError(f"{place}: {first['msg']}") from error


def fact_id(message_id: str, text: str) -> str:
    """The id of a fact that was found in a message: found again, it has the same id."""
    digest = hashlib.sha256(f"{message_id}\n{text}".encode("utf-8", "replace"))
    return f"f{digest.hexdigest()[:16]}"


def with_fact_ids(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The same facts; those of an earlier version of the program get their ids now."""
    return tuple(
        fact if fact.id else dataclasses.replace(fact, id=fact_id(fact.message_id, fact.text))
        for fact in facts
    )


def new_id() -> str:
    """A fresh random id: 32 hex digits, never given twice."""
    return uuid.uuid4().hex


def now_text() -> str:
    """The present moment in UTC, ISO 8601 with microseconds: sorts as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
