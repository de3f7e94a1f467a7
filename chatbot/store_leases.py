"""Who lives among processes of several machines: each puts off its end in the database, again and
again, and one that no longer does so has died.

The clock is the database's. A process that was only frozen, or cut off for a while, is taken for
dead as well; its turns are then interrupted, and put right when it finishes them after all.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from chatbot.errors import StoreError
from chatbot.records import new_id
from chatbot.store_database import Database
from chatbot.store_schema import runners

log = logging.getLogger(__name__)

LEASE_S = 20.0
"""After this time without a beat a process counts as dead."""
BEATS = 4
"""Beats within one lease, so that a slow one does no harm."""
_SIGN = "/"

_BEAT = sa.text(
    "INSERT INTO runners (name, lives_until) VALUES (:name, :until) "
    "ON CONFLICT (name) DO UPDATE SET lives_until = excluded.lives_until"
)


class LeasedLife:
    """The life of this process in a database that others share; owns a thread that beats."""

    def __init__(
        self, database: Database, *, on_beat: Callable[[], None], lease_s: float = LEASE_S
    ) -> None:
        """`on_beat` is called after each beat, in a thread. Raises StoreError."""
        self._database = database
        self._on_beat = on_beat
        self._lease_s = lease_s
        host = socket.gethostname().replace(_SIGN, "-")
        self._process = f"{host}:{os.getpid()}:{new_id()}"
        self._ended = threading.Event()
        self._beat()
        self._thread = threading.Thread(target=self._keep, name="store-lease", daemon=True)
        self._thread.start()

    def name(self) -> str:
        return f"{self._process}{_SIGN}{new_id()}"

    def dead(self, connection: sa.Connection, names: Sequence[str]) -> list[str]:
        alive = sa.select(runners.c.name).where(runners.c.lives_until > _now_ms(connection))
        living = set(connection.scalars(alive))
        return [name for name in names if name.partition(_SIGN)[0] not in living]

    def close(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        try:
            with self._database.write() as connection:
                mine = runners.c.name == self._process
                connection.execute(sa.delete(runners).where(mine))
        except StoreError as error:
            log.info("The end of this process shows only after a while: %s", error)

    def _keep(self) -> None:
        while not self._ended.wait(self._lease_s / BEATS):
            try:
                self._beat()
                self._on_beat()
            except StoreError as error:
                log.warning("This process cannot tell others that it lives: %s", error)

    def _beat(self) -> None:
        with self._database.write() as connection:
            until = _now_ms(connection) + round(self._lease_s * 1000)
            connection.execute(_BEAT, {"name": self._process, "until": until})


def forget_dead(connection: sa.Connection) -> None:
    """Remove processes that died, after what they left has been seen to."""
    ended = runners.c.lives_until <= _now_ms(connection)
    connection.execute(sa.delete(runners).where(ended))


def _now_ms(connection: sa.Connection) -> int:
    seconds = connection.scalar(sa.select(sa.extract("epoch", sa.func.clock_timestamp())))
    return round(float(seconds or 0) * 1000)
