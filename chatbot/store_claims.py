"""The part of the store about work that only one process at a time may do; knows no such work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import sqlalchemy as sa

from chatbot.records import now_text
from chatbot.store_database import Database
from chatbot.store_runner import Life
from chatbot.store_schema import claims

Kind = Literal["fold", "upload"]
_FIRST = sa.text(
    "INSERT INTO claims (kind, name, runner, taken) VALUES (:kind, :name, :runner, :taken) "
    "ON CONFLICT (kind, name) DO NOTHING"
)


class ClaimStore:
    """What `Store` has about claims. A claim of a process that died is void."""

    _database: Database
    _life: Life
    _runner: str

    @contextmanager
    def claimed(self, kind: Kind, name: str) -> Iterator[bool]:
        """Whether the work of this name is the caller's until the block is left.

        False while it is another's, of this process or of another one.
        """
        with self._database.write() as connection:
            is_mine = self._take(connection, kind, f"{self._database.owner}/{name}")
        try:
            yield is_mine
        finally:
            if is_mine:
                self._let_go(kind, f"{self._database.owner}/{name}")

    def _take(self, connection: sa.Connection, kind: Kind, name: str) -> bool:
        here = sa.and_(claims.c.kind == kind, claims.c.name == name)
        row = {"kind": kind, "name": name, "runner": self._runner, "taken": now_text()}
        if connection.execute(_FIRST, row).rowcount == 1:
            return True
        chosen = sa.select(claims.c.runner).where(here).with_for_update()
        holder = connection.scalar(chosen)
        if holder is None:  # Let go of just now; whoever wants it asks again.
            return False
        if not self._life.dead(connection, [holder]):
            return False
        values = {"runner": self._runner, "taken": row["taken"]}
        connection.execute(sa.update(claims).where(here).values(values))
        return True

    def _let_go(self, kind: Kind, name: str) -> None:
        here = sa.and_(claims.c.kind == kind, claims.c.name == name)
        with self._database.write() as connection:
            connection.execute(sa.delete(claims).where(here, claims.c.runner == self._runner))


def claimants(connection: sa.Connection) -> Sequence[str]:
    """Names of those who claimed work, or did when they died."""
    return connection.scalars(sa.select(claims.c.runner).distinct()).all()


def release_claims(connection: sa.Connection, names: Sequence[str]) -> None:
    """Let others have the work of these runners."""
    connection.execute(sa.delete(claims).where(claims.c.runner.in_(names)))
