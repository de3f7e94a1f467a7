"""The index: one transaction a document, stable ids, vectors that follow, other embedders."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from retrieval import database
from retrieval.embed import Vectors
from retrieval.index import Entry, Index, Window
from retrieval.types import Chunk, CleanDocument, DocumentInfo, PageSpan, RetrievalError
from retrieval.vectors import VectorIndex


def unit(position: int, dimensions: int = 8) -> np.ndarray:
    vector = np.zeros(dimensions, dtype=np.float32)
    vector[position] = 1.0
    return vector


def put(index: Index, name: str, *texts: str, vector: int = 0, **rest: object) -> DocumentInfo:
    whole = " ".join(texts)
    numbers = (0, len(texts), 3, 9)
    info = DocumentInfo(f"id-{name}", name, "txt", *numbers, "hash", "2026", 2, ("w",))
    document = CleanDocument(name, "txt", whole, (PageSpan(1, 0, len(whole), "i"),), 2, ("w",))
    entries, start = [], 0
    for text in texts:
        window = Window(0, len(text), unit(vector, int(str(rest.get("dimensions", 8)))))
        entries.append(Entry(Chunk(text, start, start + len(text), 3), (window,)))
        start += len(text) + 1
    return index.put(info, document, entries, also=rest.get("also"))  # type: ignore[arg-type]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    made = Index(tmp_path / "index.db", embedder="one")
    yield made
    made.close()


def test_what_is_put_comes_back(index: Index) -> None:
    put(index, "a.txt", "alpha one", "alpha two")
    (info,) = index.documents()
    assert (info.name, info.chunks, info.sha256) == ("a.txt", 2, "hash")
    assert index.by_name("a.txt") == info
    assert index.by_name("b.txt") is None
    document = index.document(info.id)
    assert document is not None
    assert document.text == "alpha one alpha two"
    assert document.pages == (PageSpan(1, 0, 19, "i"),)
    assert document.warnings == ("w",)
    for passage in index.passages(info.id):
        assert document.text[passage.start : passage.end] == passage.text


def test_deleting_shifts_no_ids_and_leaves_no_trace(tmp_path: Path) -> None:
    """BC-63: also after opening it again and adding another."""
    path = tmp_path / "index.db"
    index = Index(path, embedder="one")
    for position, name in enumerate("abc"):
        put(index, name, f"unique7{name} text", vector=position)
    assert index.delete("id-a")
    assert not index.delete("id-a")
    index.close()
    index = Index(path, embedder="one")
    put(index, "d", "unique7d text", vector=3)
    for position, name in enumerate("abcd"):
        ids = index.lexical([f"unique7{name}"], 5)
        near = index.dense(unit(position), 1)
        if name == "a":
            assert ids == []
            continue
        (passage,) = index.passages_by_id(ids).values()
        assert passage.document == name
        assert near[0].chunk_id == passage.chunk_id
    counts = index.counts()
    assert counts["documents"] == counts["chunks"] == counts["windows"] == counts["vectors"] == 3
    index.close()


def test_ids_are_never_given_twice(index: Index) -> None:
    put(index, "a", "one", "two")
    before = [passage.chunk_id for passage in index.passages("id-a")]
    index.delete("id-a")
    put(index, "a", "one", "two")
    assert min(p.chunk_id for p in index.passages("id-a")) > max(before)


def test_deleted_words_are_not_in_the_file(index: Index, tmp_path: Path) -> None:
    put(index, "a", "zyxwvutsecret")
    put(index, "b", "other")
    index.delete("id-a")
    assert index.counts()["term_counts"] == 2
    for path in tmp_path.iterdir():
        assert b"zyxwvutsecret" not in path.read_bytes()


def test_the_same_name_takes_over_the_id(index: Index) -> None:
    put(index, "a", "old words")
    first = index.documents()[0]
    info = DocumentInfo("other", "a", "txt", 0, 1, 1, 1, "new", "2027")
    kept = index.put(info, CleanDocument("a", "txt", "new", ()), [Entry(Chunk("new", 0, 3, 1))])
    assert kept.id == first.id
    assert index.lexical(["old"], 5) == []
    assert len(index.documents()) == 1


def test_a_failure_inside_stores_nothing(index: Index) -> None:
    put(index, "a", "old words")

    def fail(document_id: str) -> None:
        raise OSError(28, "No space left on device")

    for name in ("a", "b"):
        with pytest.raises(OSError, match="No space"):
            put(index, name, "new words", also=fail)
    assert index.lexical(["new"], 5) == []
    assert len(index.lexical(["old"], 5)) == 1
    assert index.counts()["documents"] == index.counts()["vectors"] == 1


def test_two_openings_of_one_file_see_each_other(index: Index, tmp_path: Path) -> None:
    other = Index(tmp_path / "index.db", embedder="one")
    put(index, "a", "one", vector=1)
    assert len(other.dense(unit(1), 5)) == 1
    other.delete("id-a")
    assert index.dense(unit(1), 5) == []
    other.close()


def test_vectors_of_another_model_are_never_searched(index: Index, tmp_path: Path) -> None:
    """BC-68: though their width fits."""
    put(index, "a", "one", vector=1)
    for dimensions in (8, 16):  # the same width gives no error to save anyone
        other = Index(tmp_path / "index.db", embedder="two")
        assert other.stale() == ["id-a"]
        assert other.dense(unit(1, dimensions), 5) == []
        assert len(other.lexical(["one"], 5)) == 1
        other.close()
    other = Index(tmp_path / "index.db", embedder="two")
    (passage,) = other.passages("id-a")
    other.put_windows("id-a", {passage.chunk_id: [Window(0, 3, unit(4, 16))]})
    assert other.stale() == []
    assert [hit.chunk_id for hit in other.dense(unit(4, 16), 5)] == [passage.chunk_id]
    other.close()


def test_readers_see_whole_documents_while_others_write(index: Index) -> None:
    stop = threading.Event()
    wrong: list[object] = []

    def write() -> None:
        for number in range(60):
            put(index, "a", *[f"version{number} part{i}" for i in range(5)], vector=number % 8)
            if number % 3 == 0:
                index.delete("id-a")
        stop.set()

    def read() -> None:
        while not stop.is_set():
            texts = [passage.text.split()[0] for passage in index.passages("id-a")]
            if len(texts) not in (0, 5) or len(set(texts)) > 1:
                wrong.append(texts)
            index.dense(unit(1), 50)

    threads = [threading.Thread(target=read) for _ in range(4)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = Index(tmp_path / "index.db")
    index.close()
    with pytest.raises(RetrievalError, match="closed"):
        index.documents()


def test_vector_padding_is_filtered() -> None:
    vectors = VectorIndex()
    assert vectors.search(unit(0), 5) == []
    rows = np.stack([unit(i) for i in range(3)])
    vectors.follow(np.array([7, 8, 9]), lambda ids: rows[ids - 7])
    assert len(vectors.search(unit(0), 1000)) == 3
    assert vectors.search(unit(0), 5, among=[8, 100]) == [(8, 0.0)]
    assert vectors.search(unit(0, 5), 5) == []
    vectors.follow(np.array([9]), lambda ids: rows[ids - 7])
    assert vectors.search(unit(2), 5) == [(9, 1.0)]


def test_rows_that_came_before_a_fault_do_not_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.vectors.LOADED_AT_ONCE", 2)
    vectors = VectorIndex()
    rows = np.stack([unit(i) for i in range(4)])

    def failing(ids: np.ndarray) -> np.ndarray:
        if 2 in ids:
            raise RetrievalError("The disk is gone.")
        return rows[ids]

    with pytest.raises(RetrievalError):
        vectors.follow(np.arange(4), failing)
    vectors.follow(np.arange(4), lambda ids: rows[ids])
    assert [i for i, _ in vectors.search(unit(0), 9)].count(0) == 1 and len(vectors) == 4


def test_many_vectors_are_loaded_before_anyone_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Index(tmp_path / "index.db", embedder="one")
    put(first, "a", *(f"alpha {n}" for n in range(5)))
    first.close()
    for least, loaded in ((5, 5), (6, 0)):
        monkeypatch.setattr("retrieval.index.LOADED_EARLY_FROM", least)
        index = Index(tmp_path / "index.db", embedder="one")
        if index._loader is not None:
            index._loader.join(30)
        assert len(index._vectors) == loaded
        assert len(index.dense(unit(0), 9)) == 5
        index.close()


def test_closing_does_not_wait_for_vectors_that_are_loaded_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Index(tmp_path / "index.db", embedder="one")
    put(first, "a", *(f"alpha {n}" for n in range(5)))
    first.close()
    monkeypatch.setattr("retrieval.index.LOADED_EARLY_FROM", 1)
    monkeypatch.setattr("retrieval.vectors.LOADED_AT_ONCE", 1)
    begun, go_on = threading.Event(), threading.Event()
    asked: list[int] = []

    def slow(connection: object, ids: np.ndarray) -> np.ndarray:
        asked.append(len(ids))
        begun.set()
        assert go_on.wait(30)
        return np.stack([unit(0)])

    monkeypatch.setattr("retrieval.index.load_vectors", slow)
    index = Index(tmp_path / "index.db", embedder="one")
    assert begun.wait(30)
    closing = threading.Thread(target=index.close)
    closing.start()
    assert index._closing.wait(30)
    go_on.set()
    closing.join(30)
    assert not closing.is_alive() and asked == [1]


def test_the_database_keeps_its_promises_on_disk(tmp_path: Path) -> None:
    index = Index(tmp_path / "index.db", embedder="one")
    put(index, "a", "one")
    index.close()
    connection = sqlite3.connect(tmp_path / "index.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_line_of_brackets_takes_no_time(index: Index) -> None:
    """It is looked at while no other process can write."""
    begin = time.process_time()
    put(index, "a.txt", "(" * 100_000 + "\nrest")
    assert time.process_time() - begin < 5


def test_a_damaged_file_is_said_to_be_with_its_place_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    path.write_bytes(b"no database at all " * 1000)
    with pytest.raises(RetrievalError) as caught:
        Index(path)
    assert str(path) in str(caught.value) and "add the documents again" in str(caught.value)
    assert "chats are not affected" in str(caught.value)


def test_damage_that_comes_later_is_said_in_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    index = Index(path, embedder="one")
    put(index, "a.txt", *("alpha text " * 200 for _ in range(20)))
    index.close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
    damaged = None
    calls: list[Callable[[Index], object]] = [
        Index.documents,
        lambda opened: opened.lexical(["alpha"], 5),
        lambda opened: put(opened, "a.txt", "beta"),
        lambda opened: opened.delete("id-a.txt"),
    ]
    for call in calls:
        with pytest.raises(RetrievalError, match="add the documents again"):
            damaged = damaged or Index(path, embedder="one")
            call(damaged)
    if damaged:
        damaged.close()


def test_a_locked_index_is_in_use_and_not_a_full_disk(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.1)
    other = Index(tmp_path / "index.db", embedder="one")
    held = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    with pytest.raises(RetrievalError, match="in use by another process"):
        put(other, "a.txt", "alpha")
    held.execute("ROLLBACK")
    held.close()
    put(other, "a.txt", "alpha")
    other.close()


def test_a_search_among_all_documents_is_one_without_a_choice(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Much quicker; but a document that comes meanwhile is not of those asked for."""
    ids = [put(index, name, f"alpha {name}").id for name in ("a", "b")]
    among: list[object] = []
    search = VectorIndex.search

    def spied(self: VectorIndex, query: Vectors, n: int, some: object) -> list[tuple[int, float]]:
        among.append(some)
        return search(self, query, n, some)  # type: ignore[arg-type]

    monkeypatch.setattr(VectorIndex, "search", spied)
    assert index.dense(unit(0), 9, ids) == index.dense(unit(0), 9)
    assert among == [None, None]
    assert len(index.dense(unit(0), 9, ids[:1])) == 1
    asked = index._windows_of

    def late(document_ids: list[str]) -> object:
        found = asked(document_ids)
        put(index, "c", "alpha c")
        index._follow()
        return found

    monkeypatch.setattr(index, "_windows_of", late)
    assert len(index.dense(unit(0), 9, ids)) == 2
    assert len(index.lexical(["alpha"], 9, ids)) == 2


def test_a_search_among_many_documents_costs_no_more_than_one_among_all(index: Index) -> None:
    words = [f"word{n}" for n in range(40)]
    for number in range(40):
        put(index, f"{number}.txt", *(" ".join(words) + f" {number} {n}" for n in range(25)))
    ids = [info.id for info in index.documents()]
    taken = {}
    for name, scope in {"all": None, "many": ids[1:]}.items():
        begin = time.process_time()
        found = [index.lexical(words, 20, scope) for _ in range(3)]
        taken[name] = time.process_time() - begin
        assert all(len(each) == 20 for each in found)
    assert taken["many"] < 5 * taken["all"]  # looked up anew for each row, it is 50 times
