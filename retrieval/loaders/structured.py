"""Reads JSON, JSON lines and notebooks as text that can be cut at lines. Computes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrieval.loaders.encoding import decode
from retrieval.loaders.parsed import Parsed, whole
from retrieval.loaders.tables import markdown_table

_MAX_COLUMNS = 30
_LONG_LINE = 2000
_MAX_INDENT = 20
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


class _Repeated(dict[str, Any]):
    """An object that names a key more than once: what was read of it is not all."""


def read(path: Path, max_pages: int) -> Parsed:
    """Records of one kind as a table, else the JSON with its lines; as it is if it is damaged."""
    found = decode(path.read_bytes())
    warnings = (found.warning,) if found.warning else ()
    try:
        values = _value(found.text)
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        reason = "is nested too deeply" if deep else f"is not valid JSON ({error})"
        note = f"This file {reason}; it was read as plain text."
        return whole(found.text, (*warnings, note))
    if path.suffix.lower() == ".ipynb" and isinstance(values[0], dict):
        return whole(_notebook(values[0]), warnings)
    return whole(_text(values, found.text), warnings)


def _value(text: str) -> list[Any]:
    """The values, one of JSON or several of JSON lines. Numbers are their own texts: 3.10 is a
    version to some, and no float holds 20 digits."""
    decoder = json.JSONDecoder(
        parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_object
    )
    try:
        return [decoder.decode(text)]
    except ValueError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        return [decoder.decode(line) for line in lines]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Repeated(made)


def _text(values: list[Any], source: str) -> str:
    value = values[0] if len(values) == 1 else values
    if isinstance(value, list) and (table := _table(value)):
        return table
    if "\\u" in source:
        source = _STRING.sub(lambda found: _unescaped(found[0]), source)
    if max(map(len, source.split("\n"))) <= _LONG_LINE:
        return source  # its own lines, so that a quote is found in the file
    return _in_lines(source)


def _unescaped(token: str) -> str:
    """Search and people know 한, not its number."""
    return json.dumps(json.loads(token), ensure_ascii=False) if "\\u" in token else token


def _in_lines(source: str) -> str:
    """Valid JSON with an item a line and nothing else changed."""
    depth = 0
    pieces: list[str] = []
    before = ""
    for match in _TOKEN.finditer(source):
        token = match[0]
        depth -= token in ("]", "}")
        empty = before + token in ("[]", "{}")
        first = before in ("[", "{", ",") or token in ("]", "}") or (depth == 0 and before != "")
        if first and token != "," and not empty:
            pieces.append("\n" + " " * min(depth, _MAX_INDENT))
        pieces.append(": " if token == ":" else token)
        depth += token in ("[", "{")
        before = token
    return "".join(pieces)


def _table(records: Sequence[Any]) -> str:
    """Flat records with nearly the same keys, one a row."""
    if len(records) < 2 or not all(isinstance(one, dict) for one in records):
        return ""
    if any(isinstance(one, _Repeated) for one in records):
        return ""
    keys = list(dict.fromkeys(str(key) for one in records for key in one))
    flat = all(not isinstance(v, dict | list) for one in records for v in one.values())
    filled = sum(len(one) for one in records)
    if not flat or len(keys) > _MAX_COLUMNS or filled < 0.6 * len(keys) * len(records):
        return ""
    return markdown_table(keys, [[_cell(one.get(key)) for key in keys] for one in records])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _notebook(book: dict[str, Any]) -> str:
    """Text and code of a Jupyter notebook, without its outputs."""
    blocks = []
    for cell in book.get("cells") or ():
        source = cell.get("source", "")
        text = source if isinstance(source, str) else "".join(source)
        blocks.append(text if cell.get("cell_type") != "code" else f"```\n{text}\n```")
    return "\n\n".join(block for block in blocks if block.strip("`\n "))
