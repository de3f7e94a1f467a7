"""A page of a kept PDF as a picture, drawn in a child process within limits. Knows no index."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from retrieval.load import LoadLimits, run_worker
from retrieval.types import LoadError

PICTURE_S = 10.0
MAX_PICTURE_BYTES = 16 << 20


def page_picture(path: Path, page: int, quote: str, limits: LoadLimits) -> bytes | None:
    """Page `page` (from 1) of a PDF as PNG with `quote` marked; None when there is no such page
    or it cannot be drawn: a text is shown instead then."""
    if path.suffix.lower() != ".pdf" or page < 1:
        return None
    bounds = replace(
        limits,
        timeout_s=min(limits.timeout_s, PICTURE_S),
        max_result_bytes=MAX_PICTURE_BYTES,
    )
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as folder:
        result = Path(folder) / "page.png"
        try:
            code = run_worker(path, result, bounds, {"page": page, "quote": quote})
        except LoadError:
            return None
        if code != 0 or not result.exists() or result.stat().st_size >= MAX_PICTURE_BYTES:
            return None
        return result.read_bytes()
