"""A file that several processes get at the same time is read and embedded by one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from killable import child

from benchmarks.postgres_server import PostgresServer
from chatbot import store_leases
from chatbot.errors import StoreError
from chatbot.store import Store
from chatbot.upload_claims import claim_uploads
from retrieval.claims import Claim, Claims
from retrieval.embed import ScriptedEmbedder, Vectors
from retrieval.pipeline import Library
from retrieval.types import IngestReport

TEXT = "The lamp of Carrick is 16 metres high. " * 20
WAIT_S = 60.0
LEASE_S = 2.0
LONG_LEASE_S = 120


class Watched(ScriptedEmbedder):
    """Counts the texts that it embeds, in the order of their files; may be held up."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def embed_documents(self, texts: Any) -> Vectors:
        self.texts += texts
        self.begun.set()
        assert self.go_on.wait(WAIT_S)
        return super().embed_documents(texts)


def library_at(folder: Path, store: Store, embedder: ScriptedEmbedder) -> Library:
    return Library(folder, embedder=embedder, count_tokens=len, claim=claim_uploads(store, folder))


Pair = tuple[Library, Library, Watched]


@pytest.fixture
def pair(place: Path | str, tmp_path: Path) -> Iterator[Pair]:
    """Two programs at one database and one library, with one embedder to watch."""
    with _pair(place, tmp_path) as made:
        yield made


@pytest.fixture
def local_pair(tmp_path: Path) -> Iterator[Pair]:
    """The same with a file, for what no database does."""
    with _pair(tmp_path / "chats.db", tmp_path) as made:
        yield made


@contextmanager
def _pair(place: Path | str, tmp_path: Path) -> Iterator[Pair]:
    embedder = Watched()
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            store = stack.enter_context(Store(place))
            made.append(library_at(tmp_path / "library", store, embedder))
            stack.enter_context(closing(made[-1]))
        yield made[0], made[1], embedder


def file_of(folder: Path, name: str, text: str = TEXT) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_same_file_at_two_programs_is_embedded_once(pair: Pair, tmp_path: Path) -> None:
    one, two, embedder = pair
    path = file_of(tmp_path, "carrick.txt")
    embedder.go_on.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.ingest, path)
        assert embedder.begun.wait(WAIT_S)
        n_texts = len(embedder.texts)
        second = pool.submit(two.ingest, path)
        time.sleep(0.5)
        was_waiting = not second.done() and len(embedder.texts) == n_texts
        embedder.go_on.set()
        reports = [first.result(WAIT_S), second.result(WAIT_S)]
    assert was_waiting
    assert [report.status for report in reports] == ["indexed", "unchanged"]
    assert reports[0].document_id == reports[1].document_id
    assert len(embedder.texts) == n_texts and len(one.documents()) == 1


def test_whole_folders_at_two_programs_do_not_wait_for_each_other_for_ever(
    pair: Pair, tmp_path: Path
) -> None:
    one, two, embedder = pair
    paths = [file_of(tmp_path, f"{n}.txt", f"File {n}. {TEXT}") for n in range(8)]

    def taken(library: Library, order: list[Path]) -> list[IngestReport]:
        return list(library.ingest_tree(order))

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(taken, one, paths), pool.submit(taken, two, paths[::-1])]
        reports = [report for run in runs for report in run.result(WAIT_S)]
    statuses = sorted(report.status for report in reports)
    assert statuses == ["indexed"] * 8 + ["unchanged"] * 8
    beginnings = [text for text in embedder.texts if "File " in text]
    assert len(beginnings) == 8, "a file was embedded twice"


def test_another_version_waits_for_its_turn_and_counts(local_pair: Pair, tmp_path: Path) -> None:
    one, two, embedder = local_pair
    first, other = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    other.mkdir()
    embedder.go_on.clear()
    with ThreadPoolExecutor(2) as pool:
        old = pool.submit(one.ingest, file_of(first, "x.txt"))
        assert embedder.begun.wait(WAIT_S)
        new = pool.submit(two.ingest, file_of(other, "x.txt", f"Newer. {TEXT}"))
        time.sleep(0.5)
        embedder.go_on.set()
        assert (old.result(WAIT_S).status, new.result(WAIT_S).status) == ("indexed", "indexed")
    (document,) = one.documents()
    assert one.document_text(document.id).startswith("Newer.")


def test_one_that_waits_for_another_program_can_be_cancelled(
    local_pair: Pair, tmp_path: Path
) -> None:
    one, two, embedder = local_pair
    path, cancel = file_of(tmp_path, "carrick.txt"), threading.Event()
    embedder.go_on.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.ingest, path)
        assert embedder.begun.wait(WAIT_S)
        second = pool.submit(two.ingest, path, cancel=cancel)
        cancel.set()
        assert "cancelled" in second.result(WAIT_S).message
        embedder.go_on.set()
        assert first.result(WAIT_S).status == "indexed"


def test_a_file_that_failed_is_free_at_once(local_pair: Pair, tmp_path: Path) -> None:
    one, two, _ = local_pair
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"\x00\x01")
    for library in (one, two, one):
        assert library.ingest(broken).status == "error"
    assert two.ingest(file_of(tmp_path, "broken.pdf.txt")).status == "indexed"


# Processes that die, and databases that are away


def hang(connection: Connection, place: Path | str, folder: Path, path: Path) -> None:
    """Take a file in and never come to an end."""

    class Hanging(ScriptedEmbedder):
        def embed_documents(self, texts: Any) -> Vectors:
            connection.send("begun")
            time.sleep(600)
            raise AssertionError

    store = Store(place, lease_s=LEASE_S) if isinstance(place, str) else Store(place)
    library_at(folder, store, Hanging()).ingest(path)


def test_what_a_killed_program_claimed_is_free(place: Path | str, tmp_path: Path) -> None:
    path, folder = file_of(tmp_path, "carrick.txt"), tmp_path / "library"
    with Store(place) as store, closing(library_at(folder, store, ScriptedEmbedder())) as library:
        with child(hang, place, folder, path) as hanging, ThreadPoolExecutor(1) as pool:
            assert hanging.hear() == "begun"
            waiting = pool.submit(library.ingest, path)
            # A file has no leases that could run out.
            time.sleep(LEASE_S * 1.5 if isinstance(place, str) else 0.5)
            lived = not waiting.done()
            hanging.kill()
            assert waiting.result(WAIT_S).status == "indexed"
        assert lived, "it lives, and puts its end off"
        assert [document.name for document in library.documents()] == ["carrick.txt"]


def test_without_the_database_files_are_taken_in_all_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path / "chats.db")
    library = library_at(tmp_path / "library", store, ScriptedEmbedder())
    store.close()
    with closing(library):
        assert library.ingest(file_of(tmp_path, "carrick.txt")).status == "indexed"


def test_what_could_not_be_let_go_is_free_when_the_database_is_back(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It beats often, and its lease outlasts the outage: its claim is that of one who lives.
    monkeypatch.setattr(store_leases, "BEATS", LONG_LEASE_S * 2)
    with Store(postgres.fresh(), lease_s=LONG_LEASE_S) as store:
        with store.claimed("upload", "file") as mine:
            assert mine
            postgres.stop()
        postgres.start()
        end = time.monotonic() + WAIT_S
        while not _is_free(store):
            assert time.monotonic() < end, "it is held for ever"
            time.sleep(0.1)


def _is_free(store: Store) -> bool:
    try:
        with store._database.write() as connection:
            taken = store._take(connection, "upload", "local/file")
    except StoreError:
        return False
    return taken


def test_libraries_on_several_machines_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with Store(tmp_path / "chats.db") as store:
        here, there = claim_uploads(store, tmp_path / "a"), claim_uploads(store, tmp_path / "b")
        shared, again = claim_uploads(store, None), claim_uploads(store, None)
        assert [_taken(claims) for claims in ((here, there), (shared, again), (here, here))] == [
            (True, True),
            (True, False),
            (True, False),
        ]


def _taken(claims: tuple[Claim, Claim]) -> tuple[bool, bool]:
    with claims[0]("x") as first, claims[1]("x") as second:
        return first, second


def test_what_one_call_holds_it_lets_go() -> None:
    held: set[str] = set()

    @contextmanager
    def claim(name: str) -> Iterator[bool]:
        mine = name not in held
        held.add(name)
        yield mine
        if mine:
            held.discard(name)

    check: Callable[[int], bool] = lambda n: len(held) == n  # noqa: E731
    claims = Claims(claim)
    assert claims.take("a" * 500) and claims.take("한글") and check(2)
    assert not claims.take("한글") and check(2), "it is held already"
    claims.let_go("한글")
    claims.let_go("한글")
    assert check(1) and all(len(name) <= 64 for name in held)
    claims.close()
    assert check(0)
