"""ZIP archives to files on disk, within limits. Knows no format of what is in them.

Entries are written under numbers, never under their own names, so no name can lead out of the
folder; their names serve as document names only.
"""

from __future__ import annotations

import mmap
import shutil
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath

from retrieval.load import SUPPORTED_SUFFIXES, LoadLimits, document_name
from retrieval.loaders.encoding import decode
from retrieval.loaders.entry_blocks import DAMAGED, blocks
from retrieval.types import IngestReport, LoadError

ARCHIVE_SUFFIXES = frozenset({".zip"})
MAX_FILES = 5_000
N_NAMED = 5
"""Of the files that are left out for their format, so many are named."""
MAX_TOTAL_BYTES = 2 << 30
_UTF8_NAME = 0x800
_ENCRYPTED = 0x1
# Of the headers in the directory and before each file: how they begin, and the places in them of
# the second byte of flags, of the name's length and of the name.
_HEADERS = ((b"PK\x01\x02", 9, 28, 46), (b"PK\x03\x04", 7, 26, 30))


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
        with _opened(path, folder) as archive:
            yield from _entries(archive, name, folder, limits)
    except DAMAGED as error:
        yield _refused(name, f"This archive is damaged or no ZIP file ({_reason(error)}).")


def _opened(path: Path, folder: Path) -> zipfile.ZipFile:
    """One name that is said to be UTF-8 and is not would cost all files: then that is not said
    any more, in a copy, and the name is read as those of old programs are."""
    try:
        return zipfile.ZipFile(path)
    except UnicodeDecodeError:
        copy = folder / "archive"
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
            _take_back_utf8(data)
        return zipfile.ZipFile(copy)


def _take_back_utf8(data: mmap.mmap) -> None:
    for signature, flags_at, length_at, name_at in _HEADERS:
        start = data.find(signature)
        while 0 <= start <= len(data) - name_at:
            n_bytes = int.from_bytes(data[start + length_at : start + length_at + 2], "little")
            if not _is_utf8(data[start + name_at : start + name_at + n_bytes]):
                data[start + flags_at] &= ~(_UTF8_NAME >> 8)
            start = data.find(signature, start + 1)


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


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
    elif others := [inner for _, inner in found if not _is_wanted(inner) and not _is_hidden(inner)]:
        yield IngestReport(name, "empty", message=_left_out(others))
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
        except (LoadError, *DAMAGED) as error:
            target.unlink(missing_ok=True)  # what came before the fault would fill the disk
            yield _refused(own_name, _sentence(error))
        else:
            yield Unpacked(target, own_name, _note(names[number], own_name))


def _sentence(error: Exception) -> str:
    if isinstance(error, LoadError):
        return str(error)
    return f"This file in the archive cannot be unpacked ({_reason(error)})."


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "a name in it is not UTF-8, as it says"
    return str(error) or type(error).__name__


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
        guessed = decode(entry.filename.encode("cp437")).text
    except (UnicodeEncodeError, LoadError):
        return entry.filename
    # A guess at few bytes may be wild; the ending says what the file is.
    same_ending = PurePosixPath(guessed).suffix == PurePosixPath(entry.filename).suffix
    return guessed if same_ending else entry.filename


def _clean(inner: str) -> str:
    """Without steps up and roots: the name says where a file lies in the archive, no more."""
    parts = inner.replace("\\", "/").split("/")
    return "/".join(part for part in parts if part not in ("", ".", ".."))


def _is_wanted(inner: str) -> bool:
    suffix = PurePosixPath(inner).suffix.lower()
    return not _is_hidden(inner) and suffix in SUPPORTED_SUFFIXES | ARCHIVE_SUFFIXES


def _is_hidden(inner: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in inner.split("/"))


def _left_out(others: Sequence[str]) -> str:
    more = f", … (+{len(others) - N_NAMED})" if len(others) > N_NAMED else ""
    named = ", ".join(others[:N_NAMED])
    return f"Of no format that this program reads, and left out: {named}{more}."


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
    with target.open("wb") as file:
        for block in blocks(archive, entry):
            written += len(block)
            if written > max_bytes:
                raise LoadError(
                    f"This file has more than {max_bytes / 2**20:.1f} MiB, which is not allowed."
                )
            file.write(block)
    return written


def _refused(name: str, message: str) -> IngestReport:
    return IngestReport(name, "error", message=message)
