"""How many files this process may have open. Knows no file."""

from __future__ import annotations

import sys
from contextlib import suppress

MOST = 65_536


def allow_many() -> None:
    """As many open files as the system grants without asking anybody, `MOST` at most.

    Each person who is there takes three to six; shells and services usually begin with 1,024.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # It then goes on with fewer.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
