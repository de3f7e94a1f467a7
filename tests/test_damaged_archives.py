"""Damaged and hostile ZIP archives: what is wrong with one entry costs that entry alone."""

from __future__ import annotations

import io
import random
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retrieval.load import LoadLimits
from retrieval.pipeline import Library
from retrieval.types import IngestReport
from retrieval.unpack import Unpacked, unpack

LIMITS = LoadLimits(max_bytes=1 << 20, timeout_s=30, memory_bytes=1 << 30, max_pages=50)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
TEXT = "The lamp of the harbor is lit at six. " * 20
N_MUTATIONS = 400


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    made = Library(tmp_path / "library", embedder=None, count_tokens=len)
    yield made
    made.close()


def packed(*entries: tuple[str, int]) -> bytearray:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, method in entries:
            archive.writestr(name, TEXT, method)
    return bytearray(made.getvalue())


def ingested(library: Library, folder: Path, data: bytes) -> dict[str, IngestReport]:
    folder.mkdir(exist_ok=True)
    (folder / "a.zip").write_bytes(data)
    (folder / "ok.txt").write_text("A file beside the archive.")
    reports = list(library.ingest_tree([folder / "a.zip", folder / "ok.txt"]))
    assert all(report.message for report in reports if report.status == "error")
    return {report.file: report for report in reports}


@pytest.mark.parametrize("raw", ["가.txt".encode("cp949"), b"\xb0\xa1\xff.txt", b"\xff\xfe.txt"])
def test_a_name_that_is_not_the_utf8_it_is_said_to_be(
    library: Library, tmp_path: Path, raw: bytes
) -> None:
    """It used to end the whole call; both files can be read, the name is guessed."""
    data = bytes(packed(("é" + "x" * (len(raw) - 6) + ".txt", 8), ("b.txt", 8)))
    data = data.replace("é".encode() + b"x" * (len(raw) - 6) + b".txt", raw)
    found = ingested(library, tmp_path / "in", data)
    assert [report.status for report in found.values()] == ["indexed"] * 3
    assert "a.zip/b.txt" in found and ("a.zip/가.txt" in found) is raw.startswith(b"\xb0\xa1.")


def test_a_name_that_is_wrong_before_its_file_only(library: Library, tmp_path: Path) -> None:
    data = packed(("é.txt", 8), ("b.txt", 8))
    at = data.find("é".encode())
    data[at : at + 2] = b"\xb0\xa1"
    found = ingested(library, tmp_path / "in", data)
    assert found["a.zip/b.txt"].status == "indexed"
    assert "a name in it is not UTF-8" in found["a.zip/é.txt"].message


def after_name(data: bytearray, n_bytes: int, new: bytes) -> None:
    at = data.find(b"a.txt") + len("a.txt") + n_bytes
    data[at : at + len(new)] = new


@pytest.mark.parametrize(
    ("method", "damage"),
    [
        *((method, lambda data: after_name(data, 19, b"\xff" * 8)) for method in METHODS),
        (zipfile.ZIP_LZMA, lambda data: after_name(data, 4, b"\xff")),  # properties
        (zipfile.ZIP_LZMA, lambda data: after_name(data, 2, b"\xff\xff")),  # and their length
        (zipfile.ZIP_LZMA, lambda data: after_name(data, 4, b"\x80")),  # lc and lp: too many
    ],
)
def test_a_damaged_entry_costs_itself_alone(
    library: Library, tmp_path: Path, method: int, damage: Callable[[bytearray], None]
) -> None:
    data = packed(("a.txt", method), ("b.txt", method))
    damage(data)
    found = ingested(library, tmp_path / "in", data)
    assert found["a.zip/a.txt"].status == "error"
    assert "cannot be unpacked (" in found["a.zip/a.txt"].message
    assert "()" not in found["a.zip/a.txt"].message
    assert found["a.zip/b.txt"].status == found["ok.txt"].status == "indexed"


def test_no_damage_raises_or_costs_the_file_beside_it(library: Library, tmp_path: Path) -> None:
    chance = random.Random(7)
    good = packed(*((f"é{method}.txt", method) for method in METHODS))
    for _ in range(N_MUTATIONS):
        data = bytearray(good)
        headers = [at for at in range(len(data)) if data[at : at + 2] == b"PK"]
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.choice((chance.randrange(len(data)), chance.choice(headers)))
            at = min(len(data) - 1, at + chance.randrange(50))
            data[at] = chance.choice((0, 0xFF, 0x80, chance.randrange(256)))
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        found = ingested(library, tmp_path / "in", data)
        assert found["ok.txt"].status in ("indexed", "unchanged")
        assert len(found) > 1


@pytest.mark.parametrize("method", METHODS)
def test_what_every_method_packs_comes_back(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.txt", bytes(range(256)) * 4096)
        archive.writestr("empty.txt", b"")
    files = list(unpack(path, "a.zip", tmp_path, LIMITS))
    texts = [file.path.read_bytes() for file in files if isinstance(file, Unpacked)]
    assert texts == [bytes(range(256)) * 4096, b""]


@pytest.mark.parametrize("method", METHODS[2:])
def test_much_that_is_packed_small_fills_no_memory_and_no_disk(tmp_path: Path, method: int) -> None:
    """A bomb: `zipfile` would unpack all of it at once for the first byte."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("a.txt", "w") as file:
        for _ in range(60):
            file.write(bytes(1 << 20))
    folder = tmp_path / "out"
    folder.mkdir()
    tracemalloc.start()
    try:
        (report,) = unpack(path, "a.zip", folder, LIMITS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(report, IngestReport) and "1.0 MiB" in report.message
    assert peak_bytes < 20 << 20 and not list(folder.iterdir())
