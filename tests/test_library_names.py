"""Names of documents: clean, comparable, and two files called alike stay two documents."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from retrieval import ingest
from retrieval.files import walk
from retrieval.load import LoadLimits, document_name
from retrieval.pipeline import Library
from retrieval.types import CleanDocument, LoadedFile


def made(root: Path, *names: str) -> list[Path]:
    paths = [root / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.as_posix(), encoding="utf-8")
    return paths


def test_files_of_different_names_keep_them(tmp_path: Path) -> None:
    paths = made(tmp_path, "a/one.txt", "b/two.txt")
    assert [name for _, name in walk(paths)] == ["one.txt", "two.txt"]


def test_a_file_of_a_folder_is_named_by_its_path_in_it(tmp_path: Path) -> None:
    made(tmp_path, "a/in/one.txt", "a/.hidden/two.txt", "a/program.exe")
    assert [name for _, name in walk([tmp_path / "a"])] == ["in/one.txt"]


def test_files_called_alike_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = made(tmp_path, "a/same.txt", "b/same.txt", "other.txt")
    assert [name for _, name in walk(paths)] == ["a/same.txt", "b/same.txt", "other.txt"]
    assert [name for _, name in walk([tmp_path / "a", tmp_path / "b"])] == [
        "a/same.txt",
        "b/same.txt",
    ]


def test_folders_called_alike_are_told_apart_by_their_whole_path(tmp_path: Path) -> None:
    paths = made(tmp_path, "x/a/same.txt", "y/a/same.txt")
    assert [name for _, name in walk(paths)] == [path.as_posix() for path in paths]


def test_a_file_named_twice_comes_once(tmp_path: Path) -> None:
    (path,) = made(tmp_path, "a/one.txt")
    assert walk([path, path.parent, path]) == [(path, "one.txt")]


def test_names_of_a_folder_are_clean_and_stay_apart(tmp_path: Path) -> None:
    """Names that differ only in how their characters are composed are two documents."""
    names = [unicodedata.normalize(form, "가.txt") for form in ("NFC", "NFD")]
    made(tmp_path, *(f"a/{name}" for name in names), "a/b\n\u202ec.txt")
    walked = [name for _, name in walk([tmp_path / "a"])]
    whole = (tmp_path / "a" / "가.txt").as_posix()
    assert sorted(walked) == sorted(["b c.txt", whole, f"{whole} (2)"])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("in/보고서.txt", "in/보고서.txt"),
        (unicodedata.normalize("NFD", "가/나.txt"), "가/나.txt"),
        ("/root/a\n\x00\u202eb.txt", "/root/a b.txt"),
        ("e\u200b\u0301.txt", "é.txt"),
        ("한글.txt".encode("cp949").decode("utf-8", "surrogateescape"), "한글.txt"),
        ("\ud800.txt", "?.txt"),
        ("GIF8\udcb1.txt", "GIF8?.txt"),
        ("./a/././b.txt", "a/b.txt"),
        ("/./../.b.txt", "/../.b.txt"),
        (".", "unnamed"),
        ("\n/\n", "unnamed"),
    ],
)
def test_document_names(given: str, shown: str) -> None:
    assert document_name(given) == shown
    assert document_name(shown) == shown


def test_a_name_that_is_not_utf8_stops_nothing(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "in")
    Path(os.fsdecode(folder)).mkdir()
    for name, text in ((b"bad\xb1\xe2.txt", b"The harbour is old."), (b"z.txt", b"The orchard.")):
        with open(os.path.join(folder, name), "wb") as file:  # noqa: PTH118, PTH123
            file.write(text)
    library = Library(tmp_path / "library", embedder=None, count_tokens=len)
    reports = list(library.ingest_tree([tmp_path / "in"]))
    assert [report.status for report in reports] == ["indexed", "indexed"]
    assert reports[0].file.encode() == library.documents()[0].name.encode()
    again = library.ingest_tree([tmp_path / "in"])
    assert [report.status for report in again] == ["unchanged", "unchanged"]
    library.close()


def test_names_are_compared_composed(tmp_path: Path) -> None:
    (path,) = made(tmp_path, "a.txt")
    library = Library(tmp_path / "library", embedder=None, count_tokens=len)
    first = library.ingest(path, name=unicodedata.normalize("NFD", "보고서.txt"))
    second = library.ingest(path, name="보고서.txt")
    assert (second.status, second.document_id) == ("unchanged", first.document_id)
    assert library._index.by_name(unicodedata.normalize("NFD", "보고서.txt")) is not None
    library.close()


def test_text_that_cannot_be_stored_costs_its_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = made(tmp_path, "a.txt", "b.txt")
    real = ingest.clean

    def failing(loaded: LoadedFile, *, remove_running: bool) -> CleanDocument:
        if loaded.name == "a.txt":
            "\udcb1".encode()
        return real(loaded, remove_running=remove_running)

    monkeypatch.setattr(ingest, "clean", failing)
    library = Library(tmp_path / "library", embedder=None, count_tokens=len)
    assert [report.status for report in library.ingest_tree(paths)] == ["error", "indexed"]
    library.close()


def test_pipes_and_devices_are_refused_before_they_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    library = Library(tmp_path / "library", embedder=None, count_tokens=len)
    for path in (tmp_path / "pipe.txt", Path("/dev/zero")):
        report = library.ingest(path)
        assert (report.status, report.message) == ("error", "This is not a file; choose a file.")
    library.close()


def test_what_is_too_large_is_not_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "digest", lambda path: pytest.fail(f"{path} was read"))
    (path,) = made(tmp_path, "a.txt")
    limits = LoadLimits(max_bytes=1, timeout_s=9, memory_bytes=1 << 30, max_pages=9)
    library = Library(tmp_path / "library", embedder=None, count_tokens=len, limits=limits)
    assert "are allowed" in library.ingest(path).message
    library.close()
