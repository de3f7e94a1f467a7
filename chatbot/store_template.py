"""An empty database as a file's content, made once in a process: with hundreds of people, each with
a file of their own, making the tables in each would take most of a first question's time.

Knows no table; SQLite only.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import sqlalchemy as sa

_WAL = bytes((2, 2))
_VERSIONS = slice(18, 20)
"""Where the header of a file says that it is in WAL mode (SQLite's file format, 1.3.3)."""


@cache
def empty_database(make_tables: Callable[[sa.Engine], None]) -> bytes:
    """The content of a file in WAL mode after `make_tables`."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    try:
        make_tables(engine)
        with closing(engine.raw_connection()) as connection:
            content = bytearray(connection.driver_connection.serialize())  # type: ignore[union-attr]
    finally:
        engine.dispose()
    content[_VERSIONS] = _WAL
    return bytes(content)


def put_new(path: Path, content: bytes) -> None:
    """Make a file with this content, for its owner only, unless another process was quicker; it is
    there as a whole or not at all. Does nothing where files cannot have two names."""
    made = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            # What is committed later is in the log at first, which is of no use without the file.
            os.fsync(file.fileno())
        os.link(made, path)
    except OSError:
        return  # It is then made in the usual way, whose errors have sentences.
    finally:
        made.unlink(missing_ok=True)
