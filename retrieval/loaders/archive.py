"""Opens ZIP containers (Office files) within limits. Knows nothing of what is in them."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from retrieval.types import LoadError

_MAX_ENTRIES = 10_000
_MAX_BYTES = 512 << 20
_MAX_PART_BYTES = 256 << 20
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def open_archive(path: Path, *, kind: str) -> zipfile.ZipFile:
    """The container, whose unpacked size is known to be bearable.

    `kind` names the format in sentences ("a Word document"). Raises LoadError.
    """
    with path.open("rb") as file:
        start = file.read(len(_OLE))
    if start == _OLE:
        raise LoadError(
            f"This is not {kind} in today's format: it is password-protected or older; open it "
            "in its program, remove the password, save it anew and upload that."
        )
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise LoadError(f"This file is damaged or not {kind}.") from error
    entries = archive.infolist()
    if len(entries) > _MAX_ENTRIES or sum(entry.file_size for entry in entries) > _MAX_BYTES:
        archive.close()
        raise LoadError("This file would be far too large when unpacked, and was not opened.")
    if any(entry.flag_bits & 1 for entry in entries):
        archive.close()
        raise LoadError("This file is password-protected; save a copy without a password.")
    return archive


def read_part(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """One part, None when it is missing. The size that it claims is not believed."""
    try:
        with archive.open(name) as part:
            data = part.read(_MAX_PART_BYTES + 1)
    except KeyError:
        return None
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, zlib.error) as error:
        raise LoadError("This file is damaged: a part of it cannot be unpacked.") from error
    if len(data) > _MAX_PART_BYTES:
        raise LoadError("This file would be far too large when unpacked, and was not opened.")
    return data
