"""ZIP archives to files on disk, within limits. Knows no format of what is in them.

Entries are written under numbers, never under their own names, so no name can lead out of the
folder; their names serve as document names only.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath

from retrieval.load import SUPPORTED_SUFFIXES, LoadLimits, document_name
from retrieval.loaders.encoding import decode
from retrieval.types import IngestReport, LoadError

ARCHIVE_SUFFIXES = frozenset({".zip"})
MAX_FILES = 5_000
MAX_TOTAL_BYTES = 2 << 30
_UTF8_NAME = 0x800
_ENCRYPTED = 0x1
_BLOCK_BYTES = 1 << 20
_REASONS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A file of an archive. `note` is a sentence for the user when its name was taken."""

    path: Path
    name: str
    note: str = ""


def is_archive(path: Path) -> bool:
    """Whether a file holds files of its own (documents that are ZIPs inside do not count)."""
    return path.suffix.lower() in ARCHIVE_SUFFIXES


def unpack(
    path: Path, name: str, folder: Path, limits: LoadLimits
) -> Iterator[Unpacked | IngestReport]:
    """The files of an archive that can be read, as paths in the empty `folder`, with their names;
    a report for each that cannot be had, and one for an archive that is damaged or has none.

    As in folders, hidden files and those of unknown formats are passed over. Several of one name,
    which a folder cannot have, get numbers: as documents each would take the other's place.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield from _entries(archive, name, folder, limits)
    except _REASONS as error:
        yield _refused(name, f"This archive is damaged or no ZIP file ({error}).")


def _entries(
    archive: zipfile.ZipFile, name: str, folder: Path, limits: LoadLimits
) -> Iterator[Unpacked | IngestReport]:
    # Names end at a NUL; some have nothing before it.
    nameless = [entry for entry in archive.infolist() if not entry.filename]
    for entry in nameless:
        own_name = document_name(f"{name}/{entry.orig_filename}")
        yield _refused(own_name, "This file in the archive has no valid name; rename it there.")
    named = [entry for entry in archive.infolist() if entry.filename and not entry.is_dir()]
    found = [(entry, _clean(_inner_name(entry))) for entry in named]
    wanted = [(entry, inner) for entry, inner in found if _is_wanted(inner)]
    if not wanted and not nameless:
        yield _refused(name, "There is no document of a known format in this archive.")
    if len(wanted) > MAX_FILES:
        yield _refused(name, f"This archive has {len(wanted)} files, {MAX_FILES} are allowed.")
        return
    left_bytes = MAX_TOTAL_BYTES
    names = [document_name(f"{name}/{inner}") for _, inner in wanted]
    told_apart = _told_apart(names)
    for number, (entry, inner) in enumerate(wanted):
        own_name = told_apart[number]
        target = folder / f"{number:05d}{PurePosixPath(inner).suffix.lower()}"
        try:
            left_bytes -= _extract(archive, entry, target, min(limits.max_bytes, left_bytes))
        except LoadError as error:
            yield _refused(own_name, str(error))
        except _REASONS as error:
            yield _refused(own_name, f"This file in the archive cannot be unpacked ({error}).")
        else:
            yield Unpacked(target, own_name, _note(names[number], own_name))


def _told_apart(names: Sequence[str]) -> list[str]:
    """The names, with a number in the second and later ones of each that is not another's name."""
    taken = set(names)
    seen: Counter[str] = Counter()
    result: list[str] = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else _numbered(name, seen[name], taken))
        taken.add(result[-1])
    return result


def _numbered(name: str, first: int, taken: set[str]) -> str:
    path = PurePosixPath(name)
    tries = (str(path.with_name(f"{path.stem} ({n}){path.suffix}")) for n in count(first))
    return next(new for new in tries if new not in taken)


def _note(name: str, own_name: str) -> str:
    if name == own_name:
        return ""
    return f"The archive holds more than one “{name}”; this one was added as “{own_name}”."


def _inner_name(entry: zipfile.ZipInfo) -> str:
    """The entry's name. Korean Windows writes it in CP949 and does not say so."""
    if entry.flag_bits & _UTF8_NAME or entry.filename.isascii():
        return entry.filename
    try:
        return decode(entry.filename.encode("cp437")).text
    except (UnicodeEncodeError, LoadError):
        return entry.filename


def _clean(inner: str) -> str:
    """Without steps up and roots: the name says where a file lies in the archive, no more."""
    parts = inner.replace("\\", "/").split("/")
    return "/".join(part for part in parts if part not in ("", ".", ".."))


def _is_wanted(inner: str) -> bool:
    parts = inner.split("/")
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    suffix = PurePosixPath(inner).suffix.lower()
    return not hidden and suffix in SUPPORTED_SUFFIXES | ARCHIVE_SUFFIXES


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, max_bytes: int) -> int:
    """Write an entry and return its bytes. The size that it claims is not believed."""
    if PurePosixPath(entry.filename).suffix.lower() in ARCHIVE_SUFFIXES:
        raise LoadError("This is an archive within an archive; unpack it and upload its files.")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):  # what it holds is the place that a link leads to
        raise LoadError("This is a link or a device in the archive, not a file; pack the file.")
    if entry.flag_bits & _ENCRYPTED:
        raise LoadError("This archive is password-protected; unpack it and upload its files.")
    written = 0
    with archive.open(entry) as source, target.open("wb") as file:
        while block := source.read(_BLOCK_BYTES):
            written += len(block)
            if written > max_bytes:
                target.unlink()
                raise LoadError(
                    f"This file has more than {max_bytes / 2**20:.1f} MiB, which is not allowed."
                )
            file.write(block)
    return written


def _refused(name: str, message: str) -> IngestReport:
    return IngestReport(name, "error", message=message)
