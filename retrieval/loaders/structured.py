"""Reads JSON, JSON lines and notebooks as text that can be cut at lines. Computes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrieval.loaders.encoding import decode
from retrieval.loaders.parsed import Parsed, whole
from retrieval.loaders.tables import markdown_table

_MAX_COLUMNS = 30
_LONG_LINE = 2000


def read(path: Path, max_pages: int) -> Parsed:
    """Records of one kind as a table, else the JSON with its lines; as it is if it is damaged."""
    found = decode(path.read_bytes())
    warnings = (found.warning,) if found.warning else ()
    try:
        value = _value(found.text)
    except (ValueError, RecursionError) as error:
        note = f"This file is not valid JSON ({error}); it was read as plain text."
        return whole(found.text, (*warnings, note))
    if path.suffix.lower() == ".ipynb" and isinstance(value, dict):
        return whole(_notebook(value), warnings)
    return whole(_text(value, found.text), warnings)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line) for line in lines]


def _text(value: Any, source: str) -> str:
    if isinstance(value, list) and (table := _table(value)):
        return table
    if max(map(len, source.split("\n"))) <= _LONG_LINE:
        return source  # its own lines, so that a quote is found in the file
    return json.dumps(value, ensure_ascii=False, indent=1)


def _table(records: Sequence[Any]) -> str:
    """Flat records with nearly the same keys, one a row."""
    if len(records) < 2 or not all(isinstance(one, dict) for one in records):
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
