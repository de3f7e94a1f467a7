"""A PostgreSQL server of one's own: in a temporary folder, on a Unix socket, until it is closed.

For tests and benchmarks; takes Debian's programs, version 15 or newer.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

USER = "postgres"
# Nothing here has to outlive the run, so nothing is forced onto the disk.
QUICK = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=60"
_numbers = itertools.count()


@dataclass(frozen=True)
class PostgresServer:
    """A running server. `folder` holds its socket and its data."""

    folder: Path
    programs: Path

    def url(self, schema: str) -> str:
        """A database URL in which all tables are in a schema of their own."""
        return f"postgresql://{USER}@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def fresh(self) -> str:
        """The URL of a place that holds nothing yet."""
        schema = f"t{os.getpid()}_{next(_numbers)}"
        self.run(f"CREATE SCHEMA {schema}")
        return self.url(schema)

    def run(self, statement: str) -> str:
        """What psql prints for a statement."""
        command = [self.programs / "psql", "-h", self.folder, "-U", USER, "-d", "postgres"]
        options = ["-v", "ON_ERROR_STOP=1", "-Atqc", statement]
        done = subprocess.run(
            [*map(str, command), *options], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def start(self) -> None:
        self._control("start", "-w", "-l", str(self.folder / "log"), "-o", self._options())

    def stop(self, mode: str = "fast") -> None:
        """End it: "immediate" is quick, and loses what was written last."""
        self._control("stop", "-m", mode)

    def make(self) -> None:
        """Lay out an empty database in the folder."""
        words = ["-D", self._data(), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync"]
        # A language whose order is not that of code points, as servers usually have.
        language = ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en"]
        self._as_nobody([str(self.programs / "initdb"), *words, *language])

    def _control(self, action: str, *options: str) -> None:
        self._as_nobody([str(self.programs / "pg_ctl"), action, "-s", "-D", self._data(), *options])

    def _data(self) -> str:
        return str(self.folder / "data")

    def _options(self) -> str:
        return f"-k {self.folder} -c listen_addresses='' {QUICK}"

    def _as_nobody(self, command: list[str]) -> None:
        """Run as a user who is not root: the server refuses root."""
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", *command]
        # The server keeps what it inherits, so its output goes to a file.
        with (self.folder / "output").open("ab") as output:
            subprocess.run(
                command,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                stdout=output,
                stderr=output,
                check=True,
                timeout=120,
            )


def find_programs() -> Path | None:
    """The folder with initdb and pg_ctl, the newest version first."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    on_path = shutil.which("initdb")
    candidates = [*reversed(folders), *([Path(on_path).parent] if on_path else [])]
    return next((folder for folder in candidates if (folder / "initdb").exists()), None)


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    """A running server, empty at first. Raises LookupError that says what is missing."""
    programs = find_programs()
    if programs is None:
        raise LookupError("needs a PostgreSQL server: apt-get install postgresql")
    # The path of a socket may have about 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = PostgresServer(folder, programs)
    try:
        if os.geteuid() == 0:
            try:
                owner = pwd.getpwnam(USER)
            except KeyError as error:
                message = "needs the user postgres, since the server refuses root"
                raise LookupError(message) from error
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        folder.chmod(0o755)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
