"""Short hashes of plain data and files, to tell whether two runs are of the same thing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_CHARACTERS = 16


def digest(data: Any, paths: Iterable[Path] = ()) -> str:
    """Of data that JSON can hold, and of the content of files."""
    hasher = hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode())
    for path in paths:
        hasher.update(hashlib.sha256(path.read_bytes()).digest())
    return hasher.hexdigest()[:_CHARACTERS]
