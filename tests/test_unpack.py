"""ZIP archives: what is taken from them, under which names, and what they cannot do."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from chatbot.ui.sentences import in_language
from retrieval.load import LoadLimits
from retrieval.pipeline import Library
from retrieval.types import IngestReport
from retrieval.unpack import Unpacked, unpack

LIMITS = LoadLimits(max_bytes=1 << 20, timeout_s=30, memory_bytes=1 << 30, max_pages=50)


def archive(folder: Path, parts: dict[str, bytes], name: str = "all.zip") -> Path:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for inner, data in parts.items():
            file.writestr(inner, data)
    path = folder / name
    path.write_bytes(made.getvalue())
    return path


def unpacked(path: Path, folder: Path) -> tuple[dict[str, bytes], list[IngestReport]]:
    folder.mkdir()
    parts = list(unpack(path, path.name, folder, LIMITS))
    files = {part.name: part.path.read_bytes() for part in parts if isinstance(part, Unpacked)}
    return files, [part for part in parts if isinstance(part, IngestReport)]


def test_names_are_those_in_the_archive_and_nothing_leaves_the_folder(tmp_path: Path) -> None:
    path = archive(
        tmp_path,
        {"a/휴가.txt": b"1", "../../evil.txt": b"2", "/etc/x.md": b"3", "b\\c.txt": b"4"},
    )
    before = {item for item in tmp_path.rglob("*")}
    files, reports = unpacked(path, tmp_path / "out")
    assert not reports
    assert files["all.zip/a/휴가.txt"] == b"1" and sorted(files.values()) == [
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    assert {item.parent for item in tmp_path.rglob("*") if item not in before} <= {
        tmp_path,
        tmp_path / "out",
    }


def test_a_name_that_begins_with_nul_costs_its_file_only(tmp_path: Path) -> None:
    path = archive(tmp_path, {"Zn.txt": b"a", "ok.txt": b"b"})
    path.write_bytes(path.read_bytes().replace(b"Zn.txt", b"\0n.txt"))
    files, reports = unpacked(path, tmp_path / "out")
    assert files == {"all.zip/ok.txt": b"b"}
    assert [(report.status, report.file) for report in reports] == [("error", "all.zip/n.txt")]


def test_names_from_korean_windows(tmp_path: Path) -> None:
    raw = "보고서.txt".encode("cp949")
    data = archive(tmp_path, {"X" * len(raw): b"text"}).read_bytes()
    path = tmp_path / "ko.zip"
    path.write_bytes(data.replace(b"X" * len(raw), raw))
    files, _ = unpacked(path, tmp_path / "out")
    assert list(files) == ["ko.zip/보고서.txt"]


def test_two_files_of_one_name_both_stay(tmp_path: Path) -> None:
    """ZIP allows it; the second used to take the place of the first, and nobody was told."""
    path = tmp_path / "twice.zip"
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "w") as file:
        for name, text in (
            ("a.v1/plan.txt", "The bridge opens in March."),
            ("a.v1/plan.txt", "The bridge opens in April."),
            ("a.v1/plan (2).txt", "The bridge is closed."),
            ("a.v1/plan.txt", "The bridge opens in May."),
        ):
            file.writestr(name, text)
    library = Library(tmp_path / "library", embedder=None, count_tokens=len)
    try:
        reports = list(library.ingest_archive(path, name="twice.zip"))
        texts = {r.file: library.document_text(str(r.document_id)) for r in reports}
        assert texts == {
            "twice.zip/a.v1/plan.txt": "The bridge opens in March.",
            "twice.zip/a.v1/plan (2).txt": "The bridge is closed.",
            "twice.zip/a.v1/plan (3).txt": "The bridge opens in April.",
            "twice.zip/a.v1/plan (4).txt": "The bridge opens in May.",
        }
        notes = {r.file: r.message for r in reports if "more than one" in r.message}
        assert set(notes) == {"twice.zip/a.v1/plan (3).txt", "twice.zip/a.v1/plan (4).txt"}
    finally:
        library.close()


def test_hidden_files_are_passed_over_and_unknown_ones_named_once(tmp_path: Path) -> None:
    parts = {".git/x.txt": b"1", ".git/x.bin": b"1", "__MACOSX/a.txt": b"2", "a.txt": b"4"}
    files, reports = unpacked(archive(tmp_path, parts), tmp_path / "out")
    assert list(files.values()) == [b"4"] and not reports
    unknown = {f"bin/{number}.exe": b"3" for number in range(7)}
    files, [report] = unpacked(archive(tmp_path, {**parts, **unknown}), tmp_path / "out2")
    assert list(files.values()) == [b"4"]
    assert (report.file, report.status) == ("all.zip", "empty")
    assert "bin/0.exe" in report.message and "bin/4.exe, … (+2)" in report.message
    told = in_language("ko", report.message)
    assert "bin/0.exe" in told and told.startswith("읽을 수 있는 형식이")


def test_too_large_nested_and_empty_archives_are_told(tmp_path: Path) -> None:
    path = archive(tmp_path, {"big.txt": b"0" * (2 << 20), "in.zip": b"PK", "ok.txt": b"ok"})
    files, reports = unpacked(path, tmp_path / "out")
    assert list(files) == ["all.zip/ok.txt"]
    assert ["1.0 MiB" in r.message for r in reports] == [True, False]
    assert "archive within an archive" in reports[1].message
    _, reports = unpacked(archive(tmp_path, {"a.exe": b"1"}, "none.zip"), tmp_path / "out2")
    assert "no document of a known format" in reports[0].message.replace("There is ", "")
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 no")
    _, reports = unpacked(tmp_path / "bad.zip", tmp_path / "out3")
    assert "damaged" in reports[0].message


def test_links_in_an_archive_are_no_files(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("link.txt")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/hostname")
        archive.writestr("real.txt", "words")
    folder = tmp_path / "out"
    folder.mkdir()
    refused, real = unpack(path, "a.zip", folder, LIMITS)
    assert isinstance(refused, IngestReport) and "link" in refused.message
    assert isinstance(real, Unpacked) and real.name == "a.zip/real.txt"


def test_an_archive_in_a_folder_becomes_documents(tmp_path: Path) -> None:
    source = tmp_path / "files"
    source.mkdir()
    archive(source, {"rules/leave.txt": b"Fifteen days of leave.", "b.md": b"# B\n\ntext"})
    (source / "plain.txt").write_text("A plain text.")
    library = Library(tmp_path / "library", embedder=None, count_tokens=len)
    try:
        reports = list(library.ingest_tree([source]))
        assert {(r.file, r.status) for r in reports} == {
            ("plain.txt", "indexed"),
            ("all.zip/rules/leave.txt", "indexed"),
            ("all.zip/b.md", "indexed"),
        }
        again = {r.status for r in library.ingest_archive(source / "all.zip", name="all.zip")}
        assert again == {"unchanged"}
        assert library.search("days of leave")[0].document == "all.zip/rules/leave.txt"
    finally:
        library.close()
