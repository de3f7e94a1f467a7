"""The part of the store about work that only one process at a time may do; knows no such work."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import sqlalchemy as sa

from chatbot.errors import StoreError
from chatbot.records import now_text
from chatbot.store_database import Database
from chatbot.store_runner import Life
from chatbot.store_schema import claims

log = logging.getLogger(__name__)

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
    _left: set[tuple[Kind, str, str]]

    @contextmanager
    def claimed(self, kind: Kind, name: str) -> Iterator[bool]:
        """Whether the work of this name is the caller's until the block is left.

        False while it is another's, of this process or of another one.
        """
        self._release_left()
        with self._database.write() as connection:
            is_mine = self._take(connection, kind, f"{self._database.owner}/{name}")
        try:
            yield is_mine
        finally:
            if is_mine:
                self._let_go(kind, f"{self._database.owner}/{name}")

    def _release_left(self) -> None:
        """Let go of what could not be let go while the database was away. Raises StoreError."""
        for kind, name, runner in list(self._left):
            self._remove(kind, name, runner)
            self._left.discard((kind, name, runner))

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
        try:
            self._remove(kind, name, self._runner)
        except StoreError as error:
            # The work is done. While this process lives, nobody would ever get its name again.
            self._left.add((kind, name, self._runner))
            log.warning("Work that is done is not free yet: %s", error)

    def _remove(self, kind: Kind, name: str, runner: str) -> None:
        here = sa.and_(claims.c.kind == kind, claims.c.name == name, claims.c.runner == runner)
        with self._database.write() as connection:
            connection.execute(sa.delete(claims).where(here))


def claimants(connection: sa.Connection) -> Sequence[str]:
    """Names of those who claimed work, or did when they died."""
    return connection.scalars(sa.select(claims.c.runner).distinct()).all()


def release_claims(connection: sa.Connection, names: Sequence[str]) -> None:
    """Let others have the work of these runners."""
    connection.execute(sa.delete(claims).where(claims.c.runner.in_(names)))
