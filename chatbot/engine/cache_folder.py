"""Folders that are built once and then trusted; knows nothing of models.

A finished folder holds a manifest with the size, hash and time of each file. It appears under
its name in one rename, so whatever is there under that name is complete or damaged, never half
made. Work goes on in a hidden folder beside it, which the next builder removes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from chatbot.errors import ModelError

Progress = Callable[[str, float | None], None]
"""Called with one sentence and, where known, the share done in [0, 1]."""

MANIFEST = "manifest.json"


def ignore_progress(message: str, share: float | None = None) -> None:
    """The progress callback of callers that do not care."""


def build_once(
    target: Path,
    *,
    recipe: str,
    build: Callable[[Path], None],
    needed_bytes: int,
    progress: Progress = ignore_progress,
) -> Path:
    """Return `target`, made by `build(folder)` if it is missing, damaged or of another recipe.

    `needed_bytes` is the most disk space that building takes. Only one process builds; others
    wait for it. Raises ModelError when there is no space or the folder cannot be written.
    """
    if is_intact(target, recipe):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target, progress):
            if is_intact(target, recipe):  # another process made it while this one waited
                return target
            _remove_leftovers(target)
            _check_space(target.parent, needed_bytes)
            _build(target, recipe, build)
    except OSError as error:
        raise ModelError(_cannot_write(target, error)) from error
    return target


def is_intact(folder: Path, recipe: str) -> bool:
    """Whether a folder is what its manifest says.

    A file of the recorded size and time is trusted; one with another time is hashed.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["recipe"] != recipe:
            return False
        return all(_is_same(folder / name, entry) for name, entry in manifest["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def gib(n_bytes: int) -> str:
    """Bytes for people: "1.25 GiB", or MiB below a tenth of that."""
    if n_bytes < (1 << 30) // 10:
        return f"{n_bytes / (1 << 20):.0f} MiB"
    return f"{n_bytes / (1 << 30):.2f} GiB"


def _is_same(path: Path, entry: dict[str, Any]) -> bool:
    status = path.stat()
    if status.st_size != entry["bytes"]:
        return False
    return bool(status.st_mtime_ns == entry["mtime_ns"] or sha256_of(path) == entry["sha256"])


@contextmanager
def _locked(target: Path, progress: Progress) -> Iterator[None]:
    lock = FileLock(target.with_name(f"{target.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"Waiting for another process that prepares {target.name}.", None)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _remove_leftovers(target: Path) -> None:
    # Whoever holds the lock is the only builder, so every work folder belongs to a dead one.
    for leftover in target.parent.glob(f".{target.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _check_space(folder: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        message = (
            f"Not enough disk space in {folder}: {gib(needed_bytes)} are needed and {gib(free)} "
            "are free; free some space, or set cache_dir to a folder on another disk."
        )
        raise ModelError(message)


def _build(target: Path, recipe: str, build: Callable[[Path], None]) -> None:
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        made = work / "new"
        made.mkdir()
        build(made)
        _write_manifest(made, recipe)
        if target.exists():
            target.rename(work / "old")
        made.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write_manifest(folder: Path, recipe: str) -> None:
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb+") as file:
            os.fsync(file.fileno())  # a power cut after the rename must not leave holes
        status = path.stat()
        files[path.relative_to(folder).as_posix()] = {
            "bytes": status.st_size,
            "mtime_ns": status.st_mtime_ns,
            "sha256": sha256_of(path),
        }
    text = json.dumps({"recipe": recipe, "files": files}, indent=1)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def _cannot_write(target: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk of {target.parent} is full; free some space, or set cache_dir to a folder "
            "on another disk."
        )
    reason = error.strerror or str(error)
    return (
        f"The model folder {target} cannot be written ({reason}); make it writable, or set "
        "cache_dir to another folder."
    )
