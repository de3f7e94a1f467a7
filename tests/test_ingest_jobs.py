"""Files on their way into a chat: what stays to be read, and what goes by itself."""

from __future__ import annotations

import zipfile
from pathlib import Path

from chatbot.store import Store
from chatbot.ui.inbox import Waiting
from chatbot.ui.ingest_jobs import IngestJobs
from retrieval.pipeline import Library


def test_a_file_that_replaces_an_earlier_version_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "chats.db")
    library = Library(tmp_path / "library", embedder=None, count_tokens=lambda t: len(t.split()))
    jobs = IngestJobs(library, store)
    chat = store.create_conversation().id
    for number, text in enumerate(("100 apples in 2025", "999 pears in 2026")):
        path = tmp_path / f"upload{number}.txt"
        path.write_text(text, encoding="utf-8")
        before = jobs.rows(chat)
        jobs.start(chat, [Waiting(path, "report.txt", "me", 0.0)])
        while any(not row.is_over for row in jobs.rows(chat)):
            assert jobs.wait(chat, jobs.rows(chat), 10)
        assert before == ()
    [row] = jobs.rows(chat)
    assert row.state == "note"
    assert "report.txt" in row.message and "earlier version" in row.message
    assert jobs.reading(chat) == ""
    jobs.dismiss(chat, row.id)
    assert jobs.rows(chat) == ()
    [document] = library.documents()
    assert store.load(chat).document_ids == (document.id,)
    jobs.close()
    assert list(tmp_path.glob("upload*")) == []
    library.close()
    store.close()


def test_a_warning_that_the_document_shows_is_not_said_twice(tmp_path: Path) -> None:
    store = Store(tmp_path / "chats.db")
    library = Library(tmp_path / "library", embedder=None, count_tokens=lambda t: len(t.split()))
    jobs = IngestJobs(library, store)
    chat = store.create_conversation().id
    said = []
    for number in (1, 2):
        path = tmp_path / f"upload{number}.txt"
        path.write_bytes(f"등대는 {number}898년에 지었다. ".encode() * 9 + b"\xff")
        jobs.start(chat, [Waiting(path, "lamp.txt", "me", 0.0)])
        while any(not row.is_over for row in jobs.rows(chat)):
            assert jobs.wait(chat, jobs.rows(chat), 10)
        said.append([row.message for row in jobs.rows(chat)])
    [document] = library.documents()
    [warning] = document.warnings
    first, [second] = said
    assert first == []
    assert "earlier version" in second and warning not in second
    jobs.close()
    library.close()
    store.close()


def test_the_files_of_an_archive_are_documents_of_their_own(tmp_path: Path) -> None:
    store = Store(tmp_path / "chats.db")
    library = Library(tmp_path / "library", embedder=None, count_tokens=lambda t: len(t.split()))
    jobs = IngestJobs(library, store)
    chat = store.create_conversation().id
    path = tmp_path / "upload7"  # the inbox gives no ending away
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("2025/report.txt", "100 apples")
        archive.writestr("2026/report.txt", "999 pears")
        archive.writestr("broken.pdf", b"no PDF")
    jobs.start(chat, [Waiting(path, "reports.zip", "me", 0.0)])
    while any(not row.is_over for row in jobs.rows(chat)):
        assert jobs.wait(chat, jobs.rows(chat), 60)
    documents = {info.name: info.id for info in library.documents()}
    assert set(documents) == {"reports.zip/2025/report.txt", "reports.zip/2026/report.txt"}
    assert set(store.load(chat).document_ids) == set(documents.values())
    [row] = jobs.rows(chat)
    assert (row.name, row.state) == ("reports.zip/broken.pdf", "error")
    assert row.message
    path.write_bytes(b"no archive")
    jobs.start(chat, [Waiting(path, "bad.zip", "me", 0.0)])
    while any(not row.is_over for row in jobs.rows(chat)):
        assert jobs.wait(chat, jobs.rows(chat), 60)
    assert jobs.rows(chat)[-1].name == "bad.zip"
    assert "ZIP" in jobs.rows(chat)[-1].message
    jobs.close()
    assert not path.exists()
    library.close()
    store.close()
