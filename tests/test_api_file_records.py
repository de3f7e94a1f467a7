"""Files as OpenAI lists them: what stands for a document, and for an archive of several."""

from __future__ import annotations

from chatbot.api.file_records import FileInfo, archive_file, file_id


def _file(name: str, created: int, status: str = "processed", details: str = "") -> FileInfo:
    return FileInfo(file_id(name), name, 10, created, status, details)  # type: ignore[arg-type]


def test_an_archive_is_what_its_files_are_together() -> None:
    whole = archive_file([_file("a.zip/x.txt", 3), _file("a.zip/y.txt", 5)])
    assert (whole.id, whole.name) == (file_id("a.zip"), "a.zip")
    assert (whole.n_bytes, whole.created, whole.status) == (20, 5, "processed")
    assert whole.details == "2 files of this archive were read."


def test_an_archive_is_an_error_while_one_of_its_files_is() -> None:
    broken = _file("a.zip/y.txt", 5, "error", "Its passages are gone; add it again.")
    found = archive_file([_file("a.zip/x.txt", 3), broken])
    assert found.status == "error"
    assert found.details == "1 of its 2 files cannot be used: Its passages are gone; add it again."
