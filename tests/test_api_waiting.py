"""Files that come by the API outlive the process that took them: read by the next one, or told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chatbot.api.file_records import file_id
from chatbot.api.files import ENDS_PROGRAM, MAX_BEGUN, Shelf
from chatbot.api.waiting import WaitingFile, WaitingFiles
from retrieval.types import IngestReport

DEAD_RUNNER = "1_0.000_0"


@dataclass
class Reading:
    """A library that reads when it may, and can be cancelled."""

    may: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    read: dict[str, str] = field(default_factory=dict)

    def ingest(self, path: Path, *, name: str, cancel: threading.Event) -> IngestReport:
        self.begun.set()
        while not self.may.wait(0.01):
            if cancel.is_set():
                return IngestReport(name, "error", message="Cancelled.")
        self.read[name] = path.read_text()
        return IngestReport(name, "indexed", document_id=name)

    def documents(self) -> list[Any]:
        return []

    def delete(self, document_id: str) -> None: ...

    def remove_document_everywhere(self, document_id: str) -> None: ...


class Program:
    """The part of one process that files of the API are in."""

    def __init__(self, folder: Path, *, may_read: bool = True) -> None:
        self.library = Reading()
        if may_read:
            self.library.may.set()
        self.waiting = WaitingFiles(folder)
        self.readers = ThreadPoolExecutor(1)
        library: Any = self.library
        self.shelf = Shelf(library, library, self.readers, self.waiting)

    def send(self, name: str, text: str) -> WaitingFile:
        path = self.waiting.new_path(".txt")
        path.write_text(text)
        file = self.waiting.keep(path, name, "anna")
        self.shelf.add(file)
        return file

    def resume(self) -> None:
        for file in self.waiting.take_left("anna"):
            self.shelf.add(file)
        self.readers.submit(lambda: None).result(30)  # all that came before is read

    def end(self) -> None:
        self.shelf.close()
        self.readers.shutdown(cancel_futures=True)
        self.waiting.close()


@pytest.fixture(name="first")
def a_program_that_reads_nothing(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path, may_read=False)
    yield program
    program.end()


def test_what_was_read_and_what_waited_is_read_by_the_next(first: Program, tmp_path: Path) -> None:
    first.send("one.txt", "1")
    first.send("two.txt", "2")
    assert first.library.begun.wait(30)
    first.end()
    second = Program(tmp_path)
    assert second.waiting.users_left == {"anna"}
    second.resume()
    assert second.library.read == {"one.txt": "1", "two.txt": "2"}
    assert second.waiting.users_left == frozenset()
    second.end()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_read(first: Program, tmp_path: Path) -> None:
    file = first.send("one.txt", "1")
    first.waiting.new_path(".txt").write_text("has not come in completely")
    assert first.library.begun.wait(30)  # its record was written anew for that
    file.path.parent.rename(tmp_path / DEAD_RUNNER)
    second = Program(tmp_path)
    second.resume()
    assert second.library.read == {"one.txt": "1"}
    second.end()
    assert not (tmp_path / DEAD_RUNNER).exists()


def test_a_record_that_was_being_written_is_no_file(
    first: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = first.send("one.txt", "1")
    assert first.library.begun.wait(30)
    monkeypatch.setattr(Path, "replace", lambda self, target: None)  # killed before that
    first.waiting.begin(file)
    monkeypatch.undo()
    file.path.parent.rename(tmp_path / DEAD_RUNNER)
    second = Program(tmp_path)
    second.resume()
    assert second.library.read == {"one.txt": "1"}
    second.end()


def test_what_was_deleted_or_sent_anew_is_not(first: Program, tmp_path: Path) -> None:
    first.send("blocks.txt", "")
    first.send("gone.txt", "secret")
    first.send("one.txt", "old")
    first.send("one.txt", "new")
    first.shelf.delete(file_id("gone.txt"))
    first.end()
    second = Program(tmp_path)
    second.resume()
    assert second.library.read == {"blocks.txt": "", "one.txt": "new"}
    second.end()


def test_a_file_at_which_programs_end_is_an_error(first: Program, tmp_path: Path) -> None:
    for _ in range(MAX_BEGUN):
        if not first.waiting.users_left:
            first.send("one.txt", "1")
        else:
            first.shelf.add(first.waiting.take_left("anna")[0])
        assert first.library.begun.wait(30)
        first.end()
        first = Program(tmp_path, may_read=False)
    first.resume()
    info = first.shelf.get(file_id("one.txt"))
    assert (info.status, info.details) == ("error", ENDS_PROGRAM)
    first.end()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_a_living_program_and_damaged_records_are_left_alone(
    first: Program, tmp_path: Path
) -> None:
    file = first.send("one.txt", "1")
    (tmp_path / DEAD_RUNNER).mkdir()
    for name, record in {"a.txt": "{", "b.txt": "[]", "c.txt": '{"name": 1}'}.items():
        (tmp_path / DEAD_RUNNER / name).write_text("x")
        (tmp_path / DEAD_RUNNER / f"{name}~").write_text(record)
    second = Program(tmp_path)
    assert second.waiting.users_left == frozenset()
    second.end()
    assert file.path.exists() and not (tmp_path / DEAD_RUNNER).exists()
