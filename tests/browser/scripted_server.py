"""The page over the scripted engine as a process of its own, to be killed by a test.

python -m tests.browser.scripted_server FOLDER PORT
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.browser.person import Site


def main(folder: str, port: str) -> None:
    """Print the address once the page is there, and stay."""
    site = Site(Path(folder), port=int(port))
    print(site.url, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
