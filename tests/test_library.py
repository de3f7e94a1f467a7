"""The library: adding, replacing, deleting, failing, cancelling, and what survives a kill."""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from killable import child

from retrieval.embed import Embedder, ScriptedEmbedder
from retrieval.load import LoadLimits
from retrieval.pipeline import IngestProgress, Library
from retrieval.types import RetrievalError


def count_tokens(text: str) -> int:
    return len(text.split())


def open_library(folder: Path, embedder: Embedder | None = None) -> Library:
    return Library(
        folder,
        embedder=embedder or ScriptedEmbedder(),
        count_tokens=count_tokens,
        chunk_min_tokens=20,
        chunk_max_tokens=40,
    )


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    made = open_library(tmp_path / "library")
    yield made
    made.close()


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def found(library: Library, query: str) -> set[str]:
    return {passage.document for passage in library.search(query)}


def kept_files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "library" / "files").iterdir())


def test_the_same_file_again_changes_nothing(library: Library, tmp_path: Path) -> None:
    """BC-65: a file that comes twice counts once."""
    path = write(tmp_path, "a.txt", "The harbour is old. " * 20)
    first = library.ingest(path)
    counts = library._index.counts()
    again = library.ingest(path)
    assert (first.status, again.status) == ("indexed", "unchanged")
    assert first.document_id == again.document_id
    assert first.chunks == again.chunks > 1
    assert library._index.counts() == counts


def test_new_bytes_under_a_name_take_its_place(library: Library, tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "The harbour is old.")
    first = library.ingest(path)
    write(tmp_path, "a.txt", "The orchard is young.")
    second = library.ingest(path)
    assert second.status == "indexed"
    assert (first.message, second.message) == ("", "This replaces the earlier version of “a.txt”.")
    assert second.document_id == first.document_id
    assert found(library, "harbour") == set()
    assert found(library, "orchard") == {"a.txt"}
    assert len(library.documents()) == len(kept_files(tmp_path)) == 1
    assert kept_files(tmp_path)[0].read_text(encoding="utf-8") == "The orchard is young."


def test_equal_bytes_under_two_names_are_two_documents(library: Library, tmp_path: Path) -> None:
    """BC-65, BC-66: equal bytes are no reason to refuse a second document."""
    for name in ("a.txt", "b.txt"):
        library.ingest(write(tmp_path, name, "The harbour is old."))
    ids = {info.name: info.id for info in library.documents()}
    library.delete(ids["a.txt"])
    (passage,) = library.search("harbour")
    assert (passage.document, passage.document_id) == ("b.txt", ids["b.txt"])


def test_files_called_alike_in_two_folders_stay_apart(library: Library, tmp_path: Path) -> None:
    """BC-66: a name alone is no identity."""
    write(tmp_path, "docs/2025/report.txt", "The harbour is old.")
    write(tmp_path, "docs/2026/report.txt", "The orchard is young.")
    reports = list(library.ingest_tree([tmp_path / "docs"]))
    assert [report.file for report in reports] == ["2025/report.txt", "2026/report.txt"]
    assert found(library, "harbour") == {"2025/report.txt"}
    library.delete(str(reports[0].document_id))
    assert found(library, "harbour orchard") == {"2026/report.txt"}


def test_delete_leaves_no_trace_and_the_file_can_come_again(
    library: Library, tmp_path: Path
) -> None:
    """BC-62: nothing of it is found, kept or counted after that."""
    path = write(tmp_path, "a.txt", "The zyxwvut harbour is old.")
    first = library.ingest(path)
    original = library.original_file(str(first.document_id))
    assert original is not None and original.read_bytes() == path.read_bytes()
    library.delete(str(first.document_id))
    library.delete("unknown")
    assert set(library._index.counts().values()) == {0}
    assert kept_files(tmp_path) == []
    for file in (tmp_path / "library").iterdir():
        assert not file.is_file() or b"zyxwvut" not in file.read_bytes()
    assert found(library, "harbour") == set()
    with pytest.raises(RetrievalError, match="not in the library"):
        library.document_text(str(first.document_id))
    library.close()
    reopened = open_library(tmp_path / "library")
    second = reopened.ingest(path)
    assert second.status == "indexed"
    assert second.document_id != first.document_id
    assert found(reopened, "harbour") == {"a.txt"}
    reopened.close()


def test_bad_files_are_reported_and_cost_no_others(library: Library, tmp_path: Path) -> None:
    write(tmp_path, "in/a.txt", "The harbour is old.")
    write(tmp_path, "in/b.pdf", "no pdf")
    write(tmp_path, "in/c.txt", "  \n ")
    write(tmp_path, "in/d.txt", "The orchard is young.")
    reports = list(library.ingest_tree([tmp_path / "in", tmp_path / "missing.txt"]))
    assert [r.status for r in reports] == ["indexed", "error", "empty", "indexed", "error"]
    for report in reports:
        if report.status != "indexed":
            assert report.message.endswith(".")
            assert report.document_id is None
    assert len(library.documents()) == 2


def test_limits_are_passed_on(tmp_path: Path) -> None:
    limits = LoadLimits(max_bytes=10, timeout_s=5, memory_bytes=1 << 30, max_pages=5)
    library = Library(tmp_path / "library", embedder=None, count_tokens=count_tokens, limits=limits)
    assert library.ingest(write(tmp_path, "a.txt", "more than ten bytes")).status == "error"
    library.close()


@pytest.mark.parametrize("together", [False, True])
def test_an_embedder_that_fails_leaves_nothing_half_done(tmp_path: Path, together: bool) -> None:
    library = open_library(tmp_path / "library", ScriptedEmbedder(fail_at=1))
    text = "The harbour is old and the boats are new. " * 12
    paths = [write(tmp_path, "a.txt", text), write(tmp_path, "b.txt", "Orchard.")]
    reports = (
        list(library.ingest_tree(paths)) if together else [library.ingest(path) for path in paths]
    )
    failed = [report for report in reports if report.status == "error"]
    assert len(failed) <= 1
    assert {info.name for info in library.documents()} == {
        report.file for report in reports if report.status == "indexed"
    }
    assert len(kept_files(tmp_path)) == len(library.documents())
    library.close()


def test_progress_and_cancel(tmp_path: Path) -> None:
    library = open_library(tmp_path / "library", ScriptedEmbedder(delay_s=0.001))
    path = write(tmp_path, "a.txt", "The harbour is old and the boats are new. " * 300)
    steps: list[IngestProgress] = []
    cancel = threading.Event()

    def progress(step: IngestProgress) -> None:
        steps.append(step)
        if step.stage == "embed" and step.done:
            cancel.set()

    report = library.ingest(path, progress=progress, cancel=cancel)
    assert report.status == "error" and "cancelled" in report.message
    assert library.documents() == [] and kept_files(tmp_path) == []
    steps.clear()
    assert library.ingest(path, progress=steps.append).status == "indexed"
    assert list(dict.fromkeys(step.stage for step in steps)) == ["load", "chunk", "embed", "store"]
    assert all(0 <= step.done <= step.total for step in steps)
    library.close()


def test_many_small_files_share_embedding_calls(tmp_path: Path) -> None:
    class Counting(ScriptedEmbedder):
        calls = 0

        def embed_documents(self, texts):  # type: ignore[no-untyped-def]
            type(self).calls += 1
            return super().embed_documents(texts)

    library = open_library(tmp_path / "library", Counting())
    for number in range(100):
        write(tmp_path, f"in/{number:03d}.txt", f"Fact number {number} stands here.")
    reports = list(library.ingest_tree([tmp_path / "in"]))
    assert [r.file for r in reports] == [f"{number:03d}.txt" for number in range(100)]
    assert Counting.calls <= 5
    for number in (0, 57, 99):
        assert library.search(f"fact number {number}")[0].document == f"{number:03d}.txt"
    library.close()


def test_another_embedder_replaces_all_vectors_and_empties_nothing(tmp_path: Path) -> None:
    """BC-68: of another width, and of the same."""
    library = open_library(tmp_path / "library", ScriptedEmbedder(name="one"))
    for number in range(5):
        library.ingest(write(tmp_path, f"{number}.txt", f"Harbour number {number}. " * 20))
    n_windows = library._index.counts()["vectors"]
    library.close()
    for embedder in (
        ScriptedEmbedder(name="two"),
        ScriptedEmbedder(name="three", dimensions=128),
    ):
        library = open_library(tmp_path / "library", embedder)
        assert len(found(library, "harbour")) == 5
        assert library.wait_until_embedded(10)
        assert len(embedder.embedded) == n_windows
        assert library._index.counts()["vectors"] == n_windows
        assert library._index.stale() == []
        library.close()
    broken = ScriptedEmbedder(name="four", fail_at=0)
    library = open_library(tmp_path / "library", broken)
    library.wait_until_embedded(10)
    assert library._index.stale() != []
    assert library._index.counts()["vectors"] == 0
    library.close()


def test_searching_works_while_files_come_in(tmp_path: Path) -> None:
    library = open_library(tmp_path / "library", ScriptedEmbedder(delay_s=0.002))
    library.ingest(write(tmp_path, "first.txt", "The harbour is old."))
    path = write(tmp_path, "second.txt", "The harbour wall is long. " * 200)
    thread = threading.Thread(target=library.ingest, args=(path,))
    thread.start()
    during = 0
    while thread.is_alive():
        names = found(library, "harbour")
        assert "first.txt" in names
        during += 1
    thread.join()
    assert during > 1
    assert found(library, "harbour") == {"first.txt", "second.txt"}
    library.close()


def test_one_name_from_many_threads_is_one_document(library: Library, tmp_path: Path) -> None:
    paths = [write(tmp_path, f"{i}/a.txt", f"Version {i} of the harbour.") for i in range(6)]
    threads = [
        threading.Thread(target=library.ingest, args=(path,), kwargs={"name": "a.txt"})
        for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(library.documents()) == len(library.search("harbour")) == 1
    assert len(kept_files(tmp_path)) == 1


NAMES, TEXTS = ("a.txt", "b.txt", "c.txt"), ("harbour wall", "orchard tree", "glacier ice")
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "delete", "reopen"]), st.sampled_from(NAMES),
              st.sampled_from(TEXTS)),
    max_size=8,
)  # fmt: skip


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_any_history_ends_like_a_fresh_library(
    steps: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("history")
    library = open_library(folder / "library")
    state: dict[str, str] = {}
    for action, name, text in steps:
        if action == "add":
            library.ingest(write(folder, name, f"{text} " * 30))
            state[name] = text
        elif action == "reopen":
            library.close()
            library = open_library(folder / "library")
        elif name in state:
            (info,) = [info for info in library.documents() if info.name == name]
            library.delete(info.id)
            del state[name]
    fresh = open_library(folder / "fresh")
    for name, text in state.items():
        fresh.ingest(write(folder, name, f"{text} " * 30))
    for query in (*TEXTS, "wall of ice"):
        old, new = (
            sorted((p.document, p.start, p.end, round(p.score, 6)) for p in each.search(query))
            for each in (library, fresh)
        )
        assert old == new
    assert library._index.counts() == fresh._index.counts()
    library.close()
    fresh.close()


def take_in_and_delete(connection: Connection, folder: Path) -> None:
    """For ever, saying which file is in as which turn has left it."""
    library = open_library(folder / "library", embedder=ScriptedEmbedder(delay_s=0.0005))
    connection.send("ready")
    for turn in itertools.count():
        for name in ("a.txt", "b.txt"):
            path = folder / name
            path.write_text(f"turn{turn} {name} harbour. " * 120)
            library.ingest(path)
            connection.send((name, turn))
        library.delete(next(info.id for info in library.documents() if info.name == "a.txt"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9 (not Windows)")
def test_a_kill_at_any_moment_leaves_whole_documents(tmp_path: Path) -> None:
    rng = random.Random(11)
    for _ in range(6):
        with child(take_in_and_delete, tmp_path) as process:
            assert process.hear() == "ready"
            time.sleep(rng.uniform(0.02, 0.6))
            done = dict(process.kill())
        library = open_library(tmp_path / "library")
        names = set()
        for info in library.documents():
            names.add(info.name)
            passages = library.chunks(info.id)
            turns = {word for p in passages for word in p.text.split() if word.startswith("turn")}
            assert len(turns) == 1
            assert len(passages) == info.chunks
            assert int(turns.pop()[4:]) >= (done["b.txt"] if info.name == "b.txt" else 0)
        assert names >= ({"b.txt"} if "b.txt" in done else set())
        counts = library._index.counts()
        assert counts["chunks"] == counts["terms"] == sum(i.chunks for i in library.documents())
        assert counts["windows"] == counts["vectors"]
        assert len(kept_files(tmp_path)) == len(library.documents())
        library.close()
