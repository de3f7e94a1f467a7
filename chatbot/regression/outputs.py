"""Writing reports to files, and seeing beforehand that they can be. Knows no report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from chatbot.errors import InputError


def check_outputs(outputs: Mapping[str, Path], suites: Iterable[str]) -> None:
    """Before a run that may take hours: each flag's file can be written, and is no suite.

    Raises InputError that names the flag.
    """
    taken = {_real(Path(name)): f"the suite {name}" for name in suites}
    for flag, path in outputs.items():
        place = _real(path)
        if place in taken:
            raise InputError(f"{flag} {path} would overwrite {taken[place]}; choose another file.")
        taken[place] = f"the file of {flag}"
        if place.is_dir():
            raise InputError(f"{flag} {path} is a folder; name a file in it.")
        if not place.parent.is_dir():
            raise InputError(f"{flag} {path}: there is no such folder; make it first.")
        if not os.access(place if place.exists() else place.parent, os.W_OK):
            raise InputError(f"{flag} {path} cannot be written there; choose another place.")


def write_text(path: Path, text: str) -> None:
    """Write a report, whole or not at all. Raises InputError that names the file."""
    try:
        _write(_real(path), text.encode())
    except OSError as error:
        reason = error.strerror or "unknown"
        raise InputError(f"{path} cannot be written: {reason}; choose another.") from error


def _write(path: Path, data: bytes) -> None:
    """By way of a new file, so that a full disk leaves an earlier baseline as it was."""
    if path.exists() and not (path.is_file() and os.access(path.parent, os.W_OK)):
        path.write_bytes(data)  # a device or a pipe, or a folder that takes no new files
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:50]}-", dir=path.parent)
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        new.chmod(mode)
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def _real(path: Path) -> Path:
    """What links lead to; of links in a circle, which resolve() refuses, the first."""
    return Path(os.path.realpath(path))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
