"""Files on disk: which ones to take, what they are called, their hash, a copy of each. Knows no
index."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from retrieval.load import SUPPORTED_SUFFIXES, document_name
from retrieval.unpack import ARCHIVE_SUFFIXES

_TAKEN = SUPPORTED_SUFFIXES | ARCHIVE_SUFFIXES


def walk(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Files with the names they get; those of a folder by their path in it.

    Hidden files and formats that cannot be read are passed over in folders, not when named.
    """
    found: list[tuple[Path, str]] = []
    for path in paths:
        if not path.is_dir():
            found.append((path, document_name(path.name)))
            continue
        root = path.resolve()
        for file in sorted(root.rglob("*")):
            inside = file.relative_to(root)
            hidden = any(part.startswith(".") for part in inside.parts)
            if file.is_file() and not hidden and file.suffix.lower() in _TAKEN:
                found.append((file, document_name(inside.as_posix())))
    return _distinct(found)


def _distinct(files: Sequence[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Each file once, under a name of its own: of two that are called alike, none may take the
    other's place, so both get the name of their folder, or else their whole path, or a number
    (paths that differ only in bytes that no name shows)."""
    once: dict[str, tuple[Path, str]] = {}
    for path, name in files:
        # Not resolve(): a link is a document of its own.
        once.setdefault(os.path.abspath(path), (path, name))  # noqa: PTH100
    named = list(once.values())
    for longer in (lambda path: f"{path.parent.name}/{path.name}", Path.as_posix):
        counts = Counter(name for _, name in named)
        named = [
            (path, name if counts[name] == 1 else document_name(longer(path.absolute())))
            for path, name in named
        ]
    seen: Counter[str] = Counter()
    for number, (path, name) in enumerate(named):
        seen[name] += 1
        if seen[name] > 1:
            named[number] = (path, f"{name} ({seen[name]})")
    return named


def digest(path: Path) -> tuple[str, int]:
    """SHA-256 in hex, and the number of bytes."""
    made = hashlib.sha256()
    n_bytes = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            made.update(block)
            n_bytes += len(block)
    return made.hexdigest(), n_bytes


class Originals:
    """Copies of the files as they came, one a document, named by its id."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def keep(self, source: Path, document_id: str) -> None:
        """Copy in one step: a killed process leaves either the old copy or the new one."""
        target = self._folder / f"{document_id}{source.suffix.lower()}"
        partial = self._folder / f"{secrets.token_hex(8)}.part"
        try:
            shutil.copyfile(source, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def find(self, document_id: str) -> Path | None:
        """The copy of a document's file."""
        return next(iter(self._folder.glob(f"{document_id}.*")), None)

    def remove(self, document_id: str) -> None:
        """Delete the copy, if there is one."""
        for path in self._folder.glob(f"{document_id}.*"):
            path.unlink(missing_ok=True)

    def remove_all_but(self, document_ids: set[str]) -> None:
        """Delete what no document refers to: left by a process that was killed."""
        for path in self._folder.iterdir():
            if path.name.partition(".")[0] not in document_ids:
                path.unlink(missing_ok=True)
