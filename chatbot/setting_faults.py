"""The sentence for a setting with an impossible value; knows no source and no setting by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ByteSize, SecretStr, ValidationError
from pydantic.fields import FieldInfo


def impossible(
    error: ValidationError, fields: Mapping[str, FieldInfo], sources: Mapping[str, str]
) -> str:
    """What the first impossible setting must be, what it was, and where that came from."""
    first = error.errors()[0]
    if not first["loc"]:
        return f"Impossible settings: {first['msg'].removeprefix('Value error, ')}."
    key = str(first["loc"][0])
    source = sources.get(key, "defaults")
    return f"{key} must be {_allowed(fields[key])}, not {first['input']!r} (from {source})."


def _allowed(field: FieldInfo) -> str:
    annotation: Any = field.annotation
    members = [member for member in get_args(annotation) if member is not type(None)]
    if members and all(isinstance(member, str) for member in members):
        return f"{', '.join(members[:-1])} or {members[-1]}"
    plain = members[0] if len(members) == 1 else annotation  # without "or none"
    if plain in (int, float):
        return ("a whole number" if plain is int else "a number") + _range(field)
    words = {
        bool: "true or false",
        ByteSize: "an amount of memory such as 2GiB",
        Path: "the path of a folder",
        str: "a text",
        SecretStr: "a text",
    }
    return words.get(plain, "a list of texts")


def _range(field: FieldInfo) -> str:
    """The bounds of a number, such as " from 0 to 2"."""

    def bound(name: str) -> float | None:
        return next((getattr(m, name) for m in field.metadata if hasattr(m, name)), None)

    low, above, high, below = bound("ge"), bound("gt"), bound("le"), bound("lt")
    if low is not None and high is not None:
        return f" from {low:.15g} to {high:.15g}"
    limits = {"at least": low, "above": above, "at most": high, "below": below}
    said = [f"{word} {limit:.15g}" for word, limit in limits.items() if limit is not None]
    return f" {' and '.join(said)}"
