"""The bytes of an entry of a ZIP, block by block. Knows nothing of what is in it.

`zipfile` unpacks what it reads of BZIP2 and LZMA whole, however little is asked for: a thousand
bytes become a gigabyte in memory. These are therefore unpacked here.
"""

from __future__ import annotations

import copy
import struct
import zipfile
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Iterator
from typing import IO, Protocol

try:
    import lzma
except ImportError:  # a Python that was built without it
    lzma = None  # type: ignore[assignment]

_BLOCK_BYTES = 1 << 20
_PACKED_BYTES = 64 << 10
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError, MemoryError),
    *(() if lzma is None else (lzma.LZMAError,)),
)
"""What hostile bytes make `zipfile` and the decompressors raise. Names that are not UTF-8 and
places before the start are ValueErrors, places beyond 64 bits OverflowErrors."""


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def blocks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Raises one of `DAMAGED` for an entry that is not whole."""
    if entry.compress_type not in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with archive.open(entry) as source:
            while block := source.read(_BLOCK_BYTES):
                yield block
        return
    packed = copy.copy(entry)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, entry.compress_size
    del packed.CRC  # that of what is unpacked; without one nothing is compared
    with archive.open(packed) as source:
        yield from _unpacked(source, entry)


def _unpacked(source: IO[bytes], entry: zipfile.ZipInfo) -> Iterator[bytes]:
    unpacker: _Unpacker = (
        BZ2Decompressor() if entry.compress_type == zipfile.ZIP_BZIP2 else _lzma(source)
    )
    left, checksum = entry.file_size, 0
    while left and not unpacker.eof:
        packed = source.read(_PACKED_BYTES) if unpacker.needs_input else b""
        if unpacker.needs_input and not packed:
            raise EOFError("its end is missing")
        block = unpacker.decompress(packed, min(left, _BLOCK_BYTES))
        left -= len(block)
        checksum = zlib.crc32(block, checksum)
        yield block
    if checksum != entry.CRC:
        raise zipfile.BadZipFile("Bad CRC-32")


def _lzma(source: IO[bytes]) -> _Unpacker:
    """Before the data stand a version, the length of the properties (5) and these."""
    if lzma is None:
        raise NotImplementedError("That compression method is not supported")
    _, n_bytes, properties, dictionary_bytes = struct.unpack("<HHBI", source.read(9))
    if n_bytes != 5 or properties >= 225:
        raise zipfile.BadZipFile("Bad LZMA properties")
    rest, lc = divmod(properties, 9)
    pb, lp = divmod(rest, 5)
    form = {"id": lzma.FILTER_LZMA1, "dict_size": dictionary_bytes, "lc": lc, "lp": lp, "pb": pb}
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[form])
