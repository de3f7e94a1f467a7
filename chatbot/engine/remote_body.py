"""The beginning of an answer, kept until it has shown to be a stream. Knows no reply."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

MOST_BYTES = 4 << 20
"""Of an answer that is no stream; no reply is longer."""
_BOM = b"\xef\xbb\xbf"
_EVENT_LINES = (b"data:", b"event:", b"id:", b"retry:", b":")


class KeptBody:
    """Hands the bytes of an answer on, and keeps them."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._kept: bytearray | None = bytearray()

    def forget(self) -> None:
        """It is a stream; what comes is kept no longer."""
        self._kept = None

    async def parts(self) -> AsyncIterator[bytes]:
        """As they come, but for a byte order mark, which would hide the first event."""
        begin = b""
        async for part in self._source:
            if len(begin) < len(_BOM):
                begin = part = begin + part
                if len(begin) < len(_BOM):
                    continue
                part = part.removeprefix(_BOM)
            yield self._keep(part)
        if 0 < len(begin) < len(_BOM):
            yield self._keep(begin)

    def fields(self) -> Mapping[str, Any] | None:
        """All of it, where it is one JSON object."""
        try:
            found = json.loads(bytes(self._kept or b""))
        except ValueError:  # also what is no UTF-8
            return None
        return found if isinstance(found, dict) else None

    @property
    def is_wordless(self) -> bool:
        """Nothing came but what belongs to a stream: signs of life, or its end."""
        lines = bytes(self._kept or b"").splitlines()
        return all(line.startswith(_EVENT_LINES) for line in lines if line.strip())

    def _keep(self, part: bytes) -> bytes:
        if self._kept is not None and len(self._kept) < MOST_BYTES:
            self._kept += part
        return part
