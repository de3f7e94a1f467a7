"""Files that have come in and are not read yet, on the disk with whose they are, so that the next
process goes on where one ended. Knows no HTTP and no document."""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from chatbot.store_runner import runner_lives, runner_name

log = logging.getLogger(__name__)
_RECORD = "~"
"""Ends the name of the file that says what is known of a file; no file that came in ends so."""
_UNFINISHED = ".part"
"""Ends the name of a record that is being written; a program may end in the middle of it."""
_LEFT = "left_"


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file that has come in completely. `since` is in Unix time; `begun` says how often its
    reading has begun."""

    path: Path
    name: str
    user: str
    n_bytes: int
    since: float
    begun: int = 0


class WaitingFiles:
    """The folder of this program's files, one of several programs' under a parent. Safe to use
    from many threads."""

    def __init__(self, parent: Path) -> None:
        """Takes over what programs that have ended left there."""
        self._parent = parent
        self._folder = parent / runner_name().replace(":", "_")
        self._folder.mkdir(parents=True)
        self._lock = threading.Lock()
        self._left = sorted(self._adopted(), key=lambda file: file.since)

    @property
    def users_left(self) -> frozenset[str]:
        """Whose files a program that has ended left unread."""
        with self._lock:
            return frozenset(file.user for file in self._left)

    def take_left(self, user: str) -> list[WaitingFile]:
        """The files of a person that a program that has ended left unread, oldest first; once."""
        with self._lock:
            mine = [file for file in self._left if file.user == user]
            self._left = [file for file in self._left if file.user != user]
        return mine

    def new_path(self, suffix: str) -> Path:
        """Where a file is to be written. It waits only once it is kept."""
        # Someone may have cleaned up the data folder since the last file.
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / (secrets.token_hex(16) + suffix)

    def keep(self, path: Path, name: str, user: str) -> WaitingFile:
        """Remember a file that is written completely. Raises OSError."""
        file = WaitingFile(path, name, user, path.stat().st_size, time.time())
        self._write(file)
        return file

    def begin(self, file: WaitingFile) -> WaitingFile:
        """Remember that the reading of a file begins."""
        begun = replace(file, begun=file.begun + 1)
        try:
            self._write(begun)
        except OSError as error:  # it can be read all the same
            log.info("What is known of a file could not be saved: %s", error.strerror)
        return begun

    def drop(self, file: WaitingFile) -> None:
        """Remove a file that is read, or that nobody wants. Idempotent."""
        _record_of(file.path).unlink(missing_ok=True)
        file.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave what was not read to the next program."""
        try:
            if any(self._folder.iterdir()):
                # By its own name it would count as this process's for as long as that lives.
                self._folder.rename(self._parent / f"{_LEFT}{secrets.token_hex(8)}")
            else:
                self._folder.rmdir()
        except OSError as error:
            log.info("The folder of files that came in could not be put away: %s", error.strerror)

    def _write(self, file: WaitingFile) -> None:
        record = _record_of(file.path)
        fresh = record.with_name(record.name + _UNFINISHED)
        known = {key: value for key, value in asdict(file).items() if key != "path"}
        fresh.write_text(json.dumps(known), encoding="utf-8")
        fresh.replace(record)

    def _adopted(self) -> Iterator[WaitingFile]:
        for entry in self._parent.iterdir():
            if runner_lives(entry.name.replace("_", ":")):
                continue
            for record in entry.glob(f"*{_RECORD}"):
                file = self._take_over(record)
                if file is not None:
                    yield file
            shutil.rmtree(entry, ignore_errors=True)  # files that had not come in completely

    def _take_over(self, record: Path) -> WaitingFile | None:
        """A file of another folder, now in this one; None where it cannot be used, or where
        another program that starts takes it."""
        path = self._folder / record.name.removesuffix(_RECORD)
        try:
            known = json.loads(record.read_text(encoding="utf-8"))
            file = WaitingFile(
                path, str(known["name"]), str(known["user"]), int(known["n_bytes"]),
                float(known["since"]), int(known["begun"]),
            )  # fmt: skip
            record.with_name(path.name).rename(path)
            record.rename(_record_of(path))
        except (OSError, ValueError, LookupError, TypeError):
            log.info("A file that an ended program left could not be taken over.")
            return None
        return file


def _record_of(path: Path) -> Path:
    return path.with_name(path.name + _RECORD)
