"""Chunks and vectors in Milvus: the same as the local index in all that can be asked, nothing half
done is found, nothing deleted stays, and what happens when the server goes away and comes back."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from benchmarks.postgres_server import PostgresServer
from chatbot.records import new_id
from retrieval.bm25 import document_vector, idf, query_vector, score
from retrieval.chunk_store import Entry, Window
from retrieval.embed import ScriptedEmbedder
from retrieval.index import Index
from retrieval.milvus_index import MilvusIndex, open_milvus_index
from retrieval.milvus_link import parse_address
from retrieval.pipeline import Library
from retrieval.types import (
    Chunk,
    CleanDocument,
    DocumentInfo,
    IndexAwayError,
    PageSpan,
    RetrievalError,
)
from retrieval.words import lexical_terms
from tests.milvus_server import Server, milvus_server

ROOT = Path(__file__).resolve().parent.parent
FILE_ONLY = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
"""The list of documents only in a file: PostgreSQL makes no difference and costs time."""
TEXTS = (
    "서울에서 휴가는 열다섯 날이다. 등대는 1915년에 고쳤다.",
    "The harbour lantern was paid for by the guild, and the guild kept the receipt.",
    "A lantern of the harbour. 휴가 신청은 부서장이 받는다.",
    "Nothing of that kind stands here, only the number 4242 and the word guild.",
)


def unit(position: int, dimensions: int = 8) -> np.ndarray:  # type: ignore[type-arg]
    vector = np.zeros(dimensions, dtype=np.float32)
    vector[position] = 1.0
    return vector


def put(
    index: Index | MilvusIndex, name: str, *texts: str, dimensions: int = 8, **rest: object
) -> DocumentInfo:
    numbers = (1, len(texts), 3, 9)
    info = DocumentInfo(new_id(), name, "txt", *numbers, f"hash {texts}", "2026", 2, ("w",))
    whole = "\n".join(texts)
    pages = (PageSpan(1, 0, len(whole), "i"),)
    document = CleanDocument(name, "txt", whole, pages, 2, ("w",), (("line", 2),))
    entries, start = [], 0
    for at, text in enumerate(texts):
        windows = (Window(0, len(text), unit(at % dimensions, dimensions)),)
        entries.append(Entry(Chunk(text, start, start + len(text), 3, 1, 1, "Head"), windows))
        start += len(text) + 1
    return index.put(info, document, entries, **rest)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with milvus_server(tmp_path_factory.mktemp("milvus") / "data") as running:
        yield running


@pytest.fixture
def index(server: Server, place: Path | str) -> Iterator[MilvusIndex]:
    """Once with the list of documents in a file, once in PostgreSQL."""
    if isinstance(place, Path):
        place.parent.mkdir()
    made = open_milvus_index(server.url, place, embedder="one")
    yield made
    made.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Index]:
    made = Index(tmp_path / "index.db", embedder="one")
    yield made
    made.close()


def test_both_places_answer_everything_alike(index: MilvusIndex, local: Index) -> None:
    for place in (index, local):
        put(place, "first.txt", TEXTS[0], TEXTS[1])
        put(place, "보고서.txt", TEXTS[2])
        put(place, "first.txt", *TEXTS[1:])  # replaces
        put(place, "gone.txt", "harbour 휴가")
        gone = place.by_name("gone.txt")
        assert gone is not None and place.delete(gone.id)
    names = [info.name for info in local.documents()]
    assert [info.name for info in index.documents()] == names
    for name in names:
        here, there = index.by_name(name), local.by_name(name)
        assert here is not None and there is not None
        mine, theirs = index.passages(here.id), local.passages(there.id)
        assert [(p.chunk_id, p.text, p.context, p.page, p.start) for p in mine] == [
            (p.chunk_id, p.text, p.context, p.page, p.start) for p in theirs
        ]
        document = local.document(there.id)
        assert document is not None
        found = index.document(here.id)
        assert found is not None and found.text == document.text and found.pages == document.pages
        assert index.removed_lines(here.id) == (("line", 2),)
        ids = [p.chunk_id for p in mine]
        assert index.terms_of(ids) == local.terms_of(ids)
    for query in (
        "휴가",
        "등대",
        "harbour lantern guild",
        "4242",
        "서울",
        "guild 휴가 the",
        "없다",
    ):
        terms = lexical_terms(query)
        assert index.term_frequencies(terms) == local.term_frequencies(terms)
        assert index.lexical(terms, 10) == local.lexical(terms, 10), query
    for position in range(4):
        assert index.dense(unit(position), 10) == local.dense(unit(position), 10)
    assert index.counts()["batches"] == 0


@FILE_ONLY
def test_searches_keep_to_the_documents_named(index: MilvusIndex) -> None:
    one, two = put(index, "1.txt", "the guild"), put(index, "2.txt", "the guild again")
    (mine,) = index.passages(two.id)
    assert index.lexical(["guild"], 9, [two.id]) == [mine.chunk_id]
    assert {hit.chunk_id for hit in index.dense(unit(0), 9, [two.id])} == {mine.chunk_id}
    assert len(index.lexical(["guild"], 9, [one.id, two.id])) == 2
    assert index.lexical(["guild"], 9, []) == index.dense(unit(0), 9, []) == []
    assert index.lexical(["guild"], 9, ["' or 1 == 1 or '"]) == []


@FILE_ONLY
def test_deleted_text_is_gone_and_the_id_stays_with_the_name(index: MilvusIndex) -> None:
    first = put(index, "a.txt", "a secret word", "more")
    again = put(index, "a.txt", "another word")
    assert again.id == first.id
    assert index.counts() | {"documents": 1, "chunks": 1, "windows": 1} == index.counts()
    assert index.lexical(["secret"], 9) == []
    assert index.delete(first.id) and not index.delete(first.id)
    assert set(index.counts().values()) == {0}
    new = put(index, "a.txt", "third")
    assert index.passages(new.id)[0].chunk_id > 3, "an id was given twice"


@pytest.mark.parametrize("broken", ["also", "rows"])
def test_what_fails_stores_nothing(
    index: MilvusIndex, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    put(index, "a.txt", "the old text")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    if broken == "rows":  # after the chunks are in Milvus
        monkeypatch.setattr(index, "_write_windows", fail)
    with pytest.raises(OSError, match="disk full"):
        put(index, "a.txt", "the new text", also=fail)
    monkeypatch.undo()
    assert index.lexical(["new"], 9) == []
    assert len(index.lexical(["old"], 9)) == 1
    counts = index.counts()
    assert (counts["chunks"], counts["windows"], counts["batches"]) == (1, 1, 0)


@FILE_ONLY
def test_nobody_finds_what_is_being_written(
    index: MilvusIndex, server: Server, place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index, "a.txt", "old text of the guild")
    other = open_milvus_index(server.url, place, embedder="one")
    seen: list[list[str]] = []
    publish = index._catalogue.publish

    def look(*values: object, **rest: object) -> DocumentInfo:
        found = other.passages_by_id(other.lexical(["guild"], 9))
        found.update(other.passages_by_id([hit.chunk_id for hit in other.dense(unit(0), 9)]))
        seen.append(sorted(passage.text for passage in found.values()))
        return publish(*values, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(index._catalogue, "publish", look)
    put(index, "a.txt", "new text of the guild")
    assert seen == [["old text of the guild"]]
    found = other.passages_by_id(other.lexical(["guild"], 9))
    assert [passage.text for passage in found.values()] == ["new text of the guild"]
    other.close()


def test_readers_see_one_version_or_the_other(index: MilvusIndex) -> None:
    put(index, "a.txt", *(f"version x guild {i}" for i in range(5)))
    stop, wrong = threading.Event(), list[set[str]]()

    def read() -> None:
        while not stop.is_set():
            chunk_ids = index.lexical(["guild"], 20)
            versions = {p.text.split()[1] for p in index.passages_by_id(chunk_ids).values()}
            if len(versions) > 1 or len(chunk_ids) != 5:
                wrong.append(versions)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for version in "abcdef":
        put(index, "a.txt", *(f"version {version} guild {i}" for i in range(5)))
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


@FILE_ONLY
def test_vectors_of_another_model_or_width_are_never_searched(
    index: MilvusIndex, server: Server, place: Path | str
) -> None:
    info = put(index, "a.txt", "one", "two")
    other = open_milvus_index(server.url, place, embedder="other")
    assert other.stale() == [info.id]
    assert not other.has_vectors() and other.dense(unit(0), 9) == []
    assert index.dense(unit(0, 16), 9) == []
    ids = [passage.chunk_id for passage in other.passages(info.id)]
    wide = {i: [Window(0, 3, unit(at, 16))] for at, i in enumerate(ids)}
    other.put_windows(info.id, wide)
    assert other.stale() == [] and [h.chunk_id for h in other.dense(unit(1, 16), 1)] == ids[1:]
    assert index.stale() == [info.id] and index.dense(unit(0), 9) == []
    counts = other.counts()
    assert (counts["windows"], counts["vectors"], counts["batches"]) == (2, 2, 0)
    other.close()


@FILE_ONLY
def test_owners_share_a_place_and_see_only_their_own(index: MilvusIndex) -> None:
    mine = put(index, "a.txt", "the guild")
    with_other = index.for_owner("person:ko")
    theirs = put(with_other, "a.txt", "the guild of others")
    assert theirs.id != mine.id
    assert [i.id for i in index.documents()] == [mine.id]
    (found,) = with_other.passages_by_id(with_other.lexical(["guild"], 9)).values()
    assert found.text == "the guild of others"
    assert with_other.document(mine.id) is None and not with_other.delete(mine.id)
    with_other.close()
    assert len(index.lexical(["guild"], 9)) == 1, "closing one closed the other"


@FILE_ONLY
def test_a_chunk_too_long_for_milvus_is_kept_whole(index: MilvusIndex) -> None:
    long = "휴가 " * 20_000 + "끝"
    info = put(index, "long.txt", "short", long)
    assert index.passages(info.id)[1].text == long
    (chunk_id,) = index.lexical(["휴가"], 9)
    assert index.passages_by_id([chunk_id])[chunk_id].text == long


@FILE_ONLY
def test_lost_rows_are_said(index: MilvusIndex) -> None:
    info = put(index, "a.txt", "one", "two")
    place = index._catalogue.place(info.id)
    assert place is not None
    index._collections.delete_batch("chunks", place.batch, index._owner)
    with pytest.raises(RetrievalError, match=r"hold the passages of 1 document .*“a.txt”"):
        index.passages(info.id)
    assert index.lost().ids == (info.id,) == index.lost([info.id]).ids


def test_rows_of_a_process_that_died_are_removed(
    server: Server, tmp_path: Path, postgres: PostgresServer
) -> None:
    """It dies while it writes to two places, one of each kind."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from tests.test_milvus_index import put\n"
        "from retrieval.milvus_index import open_milvus_index\n"
        "url, file, database = sys.argv[1:]\n"
        "one = open_milvus_index(url, Path(file), embedder='one')\n"
        "two = open_milvus_index(url, database, embedder='one')\n"
        "die = lambda _: os._exit(9)\n"
        "put(one, 'a.txt', 'the guild', also=lambda _: put(two, 'a.txt', 'the guild', also=die))\n"
    )
    places: tuple[Path, str] = (tmp_path / "catalogue.db", postgres.fresh())
    with ExitStack() as stack:
        # Before the process is begun, since opening removes such rows, too.
        indexes = [open_milvus_index(server.url, place, embedder="one") for place in places]
        for index in indexes:
            stack.callback(index.close)
        command = [sys.executable, "-c", code, server.url, *map(str, places)]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == 9
        for index in indexes:
            assert index.counts()["chunks"] == 1 and index.lexical(["guild"], 9) == []
            put(index, "b.txt", "other")
            counts = index.counts()
            assert (counts["chunks"], counts["batches"]) == (1, 0)


def test_a_server_that_goes_and_comes_back(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.milvus_link.REST_S", 0.2)
    monkeypatch.setattr("retrieval.milvus_link.READ_S", 1.0)
    monkeypatch.setattr("retrieval.milvus_link.WRITE_S", 1.0)
    file = tmp_path / "a.txt"
    file.write_text("The guild paid for the lantern.", encoding="utf-8")
    embedder = ScriptedEmbedder(dimensions=16)
    store = open_milvus_index(server.url, tmp_path / "c.db", embedder=embedder.name)
    library = Library(tmp_path, embedder=embedder, count_tokens=len, store=store)
    assert library.ingest(file).status == "indexed"
    server.kill()
    try:
        with pytest.raises(
            IndexAwayError,
            match=r"does not answer; see that it runs and --vector-url is right\. Nothing",
        ):
            library.search("guild")
        report = library.ingest(file, name="b.txt")
        assert (report.status, "does not answer" in report.message) == ("error", True)
        assert [info.name for info in library.documents()] == ["a.txt"]
        library.delete(library.documents()[0].id)
        assert library.ingest(file, name="c.txt").status == "error"
    finally:
        server.start()
    for _ in range(100):
        report = library.ingest(file, name="d.txt")
        if report.status == "indexed":
            break
        threading.Event().wait(0.1)
    assert [passage.document for passage in library.search("guild")] == ["d.txt"]
    assert store.answers()
    counts = store.counts()
    assert (counts["chunks"], counts["batches"]) == (1, 0), "deleted text is still there"
    library.close()


def test_a_server_that_is_not_there_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        index = open_milvus_index("http://user:geheim@127.0.0.1:9", tmp_path / "c.db")
    assert "http://127.0.0.1:9 does not answer" in caplog.text and "geheim" not in caplog.text
    assert index.documents() == []
    with pytest.raises(IndexAwayError):
        index.lexical(["a"], 1) or put(index, "a.txt", "one")
    index.close()


def test_a_file_is_for_one_process(tmp_path: Path) -> None:
    url = str(tmp_path / "new" / "vectors.db")
    one = open_milvus_index(url, tmp_path / "c.db", embedder="one")
    info = put(one, "a.txt", "the guild")
    two = open_milvus_index(url, tmp_path / "c.db", embedder="one")  # the same process may
    assert two.lexical(["guild"], 1) == one.lexical(["guild"], 1) != []
    code = (
        "import sys; from pathlib import Path\n"
        "from retrieval.milvus_index import open_milvus_index\n"
        "try:\n    open_milvus_index(sys.argv[1], Path(sys.argv[2]))\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    command = [sys.executable, "-c", code, url, str(tmp_path / "c.db")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "RetrievalError The vector file" in done.stdout and "another process" in done.stdout
    assert done.stderr == ""
    one.close()
    assert two.passages(info.id)[0].text == "the guild", "closing one closed the other"
    two.close()
    assert not [t for t in threading.enumerate() if "_serve" in t.name and url in t.name]
    again = open_milvus_index(url, tmp_path / "c.db", embedder="one")
    assert again.passages(info.id)[0].text == "the guild"
    again.close()


def test_importing_the_client_changes_nothing_else(tmp_path: Path) -> None:
    """It would read a .env file beside the environment, and log to the terminal by itself."""
    code = (
        "import asyncio, logging, os, sys, threading\n"
        "before = (dict(os.environ), list(logging.root.handlers), logging.root.level)\n"
        "from retrieval.milvus_import import import_milvus\nimport_milvus()\n"
        "assert before == (dict(os.environ), list(logging.root.handlers), logging.root.level)\n"
        "assert threading.active_count() == 1\n"
        "assert not logging.getLogger('pymilvus').handlers\n"
        "assert asyncio.run(asyncio.sleep(0, 'runs')) == 'runs'\n"
        "from google.protobuf import descriptor_pool\n"
    )
    (tmp_path / ".env").write_text("FROM_ENV_FILE=1\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)


@pytest.mark.parametrize(
    ("url", "uri", "token", "database"),
    [
        ("http://milvus:19530", "http://milvus:19530", "", ""),
        ("https://a:b%40c@host/team", "https://host:19530", "a:b@c", "team"),
        ("https://key@host:443", "https://host:443", "key", ""),
    ],
)
def test_addresses(url: str, uri: str, token: str, database: str) -> None:
    address = parse_address(url)
    assert (address.uri, address.token, address.database) == (uri, token, database)
    assert address.shown == uri


@pytest.mark.parametrize("url", ["vectors", "redis://host", "http://host:port"])
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(RetrievalError, match="correct --vector-url"):
        parse_address(url)


def test_the_product_of_the_vectors_is_bm25() -> None:
    counts, idfs = {"guild": 3, "휴가": 1, "the": 9}, {"guild": idf(2, 9), "휴가": idf(1, 9)}
    made, asked = document_vector(counts, 20.0), query_vector(idfs)
    product = sum(value * made.get(place, 0.0) for place, value in asked.items())
    met = {term: counts[term] for term in idfs}
    assert product == pytest.approx(score(met, 13, 20.0, idfs))
    assert idf(9, 9) > 0
