"""Which programs have a data folder open now: each leaves a mark there. Knows no command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chatbot.errors import StoreError
from chatbot.parts import make_private
from chatbot.store_runner import runner_lives, runner_name

MARKS = "open"
_COLON, _AS_FILE = ":", "_"


@contextmanager
def marked_open(data_dir: Path) -> Iterator[None]:
    """Let others see that this process has the folder open, until the block is left.

    A mark that cannot be made is left out: it is only for a hint.
    """
    mark = data_dir / MARKS / runner_name().replace(_COLON, _AS_FILE)
    with suppress(OSError, StoreError):
        make_private(data_dir)
        mark.parent.mkdir(exist_ok=True, mode=0o700)
        mark.touch(mode=0o600)
    try:
        yield
    finally:
        with suppress(OSError):
            mark.unlink(missing_ok=True)


def open_elsewhere(data_dir: Path) -> list[int]:
    """The ids of the processes of this machine that have the folder open.

    Marks of those that died, which could take none away, are removed.
    """
    numbers = []
    for mark in sorted((data_dir / MARKS).glob(f"*{_AS_FILE}*")):
        name = mark.name.replace(_AS_FILE, _COLON)
        if runner_lives(name):
            numbers.append(int(name.partition(_COLON)[0]))
        else:
            with suppress(OSError):
                mark.unlink(missing_ok=True)
    return numbers
