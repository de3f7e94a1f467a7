"""The parser's own process: reads one file, writes its text as JSON, or one page of it as a
picture. Knows no caller.

Started as `python -m retrieval.loaders.worker` with the job as JSON on stdin. What it may cost
is limited from the inside, so that it also ends when the program that started it is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from retrieval.loaders import LOADERS
from retrieval.loaders.parsed import sanitized, to_json
from retrieval.loaders.recognition import OVERTIME_S
from retrieval.types import LoadError


def main() -> int:
    """0 when a result was written, be it the text, a sentence or a picture; anything else is a
    crash."""
    job = json.load(sys.stdin)
    _limit(job["timeout_s"], job["memory_bytes"], job["result_bytes"])
    result = Path(job["result"])
    if "page" in job:
        from retrieval.loaders.page_picture import draw

        result.write_bytes(draw(Path(job["path"]), job["page"], job["quote"]))
    else:
        result.write_text(_result(job), encoding="ascii")
    return 0


def _result(job: dict[str, str | int]) -> str:
    """Damaged files make parsers raise anything: in this process all of it ends as a sentence."""
    loader = LOADERS[str(job["suffix"])]
    try:
        return to_json(
            sanitized(loader.read(Path(str(job["path"])), max_pages=int(job["max_pages"])))
        )
    except LoadError as error:
        return json.dumps({"error": str(error)})
    except MemoryError:
        return json.dumps({"error": "Reading this file takes more memory than is allowed."})
    except RecursionError:
        return json.dumps({"error": "This file is nested too deeply to be read."})
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        sentence = "This file is damaged or not what its name says, and cannot be read"
        return json.dumps({"error": f"{sentence} ({detail[:200]})."})


def _limit(timeout_s: float, memory_bytes: int, result_bytes: int) -> None:
    """Linux and macOS. Windows has no such limits: there only the caller's clock counts."""
    with contextlib.suppress(ImportError):
        import resource
        import signal

        # The caller kills earlier; this is for a caller that was killed itself.
        signal.setitimer(signal.ITIMER_REAL, timeout_s + OVERTIME_S)
        _lower(resource.RLIMIT_FSIZE, result_bytes)
        _lower(resource.RLIMIT_CORE, 0)
        # What is mapped already (Python itself) is not the file's fault.
        _lower(resource.RLIMIT_AS, _mapped_bytes() + memory_bytes)


def _lower(kind: int, limit: int) -> None:
    import resource

    _, hard = resource.getrlimit(kind)
    ceiling = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses some of them
        resource.setrlimit(kind, (ceiling, ceiling))


def _mapped_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 1 << 30
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
