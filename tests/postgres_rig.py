"""Stores of both kinds for tests: a file, and a PostgreSQL server that the tests start themselves.

Debian's server, which scripts/tools.sh installs; tests are skipped, with the reason, without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.postgres_server import PostgresServer, own_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server, empty at first."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install -r requirements-team.txt")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(own_server())
        except LookupError as error:
            pytest.skip(str(error))
        yield server


@pytest.fixture(name="place", params=["sqlite", "postgresql"])
def either_place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a store may be, once of each kind; nothing is there yet."""
    if request.param == "sqlite":
        return tmp_path / "data" / "chats.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh()
