"""The counts of terms are those that FTS5 has, whatever happened to the documents."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from retrieval import term_renewal
from retrieval.index import Entry, Index
from retrieval.types import Chunk, CleanDocument, DocumentInfo, PageSpan
from retrieval.words import lexical_terms

WORDS = (
    "서울에서 회의를 the report Straße γενής ½ x² e\u0301t\u00e9 中文・テスト नमस्ते i\u0307 \u01c5"
    " 3.14 a_b \u0e44\u0e17\u0e22"
)


def put(index: Index, name: str, chosen: random.Random, *, fail: bool = False) -> None:
    texts = [" ".join(chosen.choices(WORDS.split(), k=6)) + "." for _ in range(3)]
    whole = " ".join(texts)
    info = DocumentInfo(f"id-{name}", name, "txt", 0, 3, 9, 9, name, "2026")
    document = CleanDocument(name, "txt", whole, (PageSpan(None, 0, len(whole)),))
    starts = [sum(len(text) + 1 for text in texts[:at]) for at in range(3)]
    entries = [
        Entry(Chunk(text, start, start + len(text), 3))
        for text, start in zip(texts, starts, strict=True)
    ]

    def failing(_: str) -> None:
        raise ValueError

    index.put(info, document, entries, also=failing if fail else None)


def put_text(index: Index, text: str) -> None:
    info = DocumentInfo(text[:5], text[:5], "txt", 0, 1, 9, 9, text, "2026")
    document = CleanDocument(text[:5], "txt", text, (PageSpan(None, 0, len(text)),))
    index.put(info, document, [Entry(Chunk(text, 0, len(text), 3))])


def tables(path: Path) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """What is counted, and what FTS5 counts."""
    with closing(sqlite3.connect(path)) as connection:
        return (
            connection.execute("SELECT term, chunks FROM frequencies ORDER BY term").fetchall(),
            connection.execute("SELECT term, doc FROM term_counts ORDER BY term").fetchall(),
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def index(path: Path) -> Iterator[Index]:
    with closing(Index(path)) as made:
        yield made


def test_counts_follow_documents_in_all_they_go_through(index: Index, path: Path) -> None:
    chosen = random.Random(0)
    for step in range(40):
        name = chosen.choice("abcde")
        if chosen.random() < 0.3:
            index.delete(f"id-{name}")
        elif chosen.random() < 0.2:
            with pytest.raises(ValueError):
                put(index, name, chosen, fail=True)
        else:
            put(index, name, chosen)
        counted, wanted = tables(path)
        assert counted == wanted, step
    assert counted
    for name in "abcde":
        index.delete(f"id-{name}")
    assert tables(path) == ([], [])


def test_a_file_from_before_the_counts_is_counted_once(path: Path) -> None:
    with closing(Index(path)) as index:
        put(index, "old", random.Random(1))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE frequencies")
        connection.execute("DELETE FROM meta WHERE key = 'frequencies'")
    with closing(Index(path)) as index:
        total, counts = index.term_frequencies(["report", "서울", "nowhere"])
        put(index, "new", random.Random(2))
    assert (total, set(counts)) == (3, {"report", "서울"})
    counted, wanted = tables(path)
    assert counted == wanted


def test_words_with_accents_are_found_without_them_in_an_old_file_too(path: Path) -> None:
    with closing(Index(path)) as index:
        put_text(index, "a naïve café, protégés")
        put_text(index, "plain words")
    with closing(sqlite3.connect(path)) as connection, connection:
        # As the first version stored them.
        connection.execute("UPDATE terms SET body = 'a naive cafe proteges' WHERE rowid = 1")
        connection.execute("DELETE FROM meta WHERE key IN ('frequencies', 'terms')")
    with closing(Index(path)) as index:
        for query in ("naive", "naïve", "nai\u0308ve", "protege"):
            assert index.lexical(lexical_terms(query), 5) == [1], query
    counted, wanted = tables(path)
    assert counted == wanted and "naiv" in dict(counted) and "naive" not in dict(counted)
    with closing(Index(path)), closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'terms'").fetchone()


def test_renewed_words_are_kept_when_the_process_is_killed_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Index(path)) as index:
        for name in "abcd":
            put_text(index, f"{name}aa naïve")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE terms SET body = 'naive'")
        connection.execute("DELETE FROM meta WHERE key IN ('frequencies', 'terms')")
    monkeypatch.setattr(term_renewal, "CHUNKS_AT_ONCE", 2)
    renewed: list[str] = []
    renew = term_renewal._renew

    def killed(connection: sqlite3.Connection, document_id: str, name: str) -> int:
        if len(renewed) == 3:
            raise KeyboardInterrupt
        renewed.append(document_id)
        return renew(connection, document_id, name)

    monkeypatch.setattr(term_renewal, "_renew", killed)
    with pytest.raises(KeyboardInterrupt):
        Index(path)
    del renewed[:]
    with closing(Index(path)) as index:
        assert len(index.lexical(lexical_terms("naive"), 9)) == 4
    assert len(renewed) == 2  # the two of the first step are not done again
    counted, wanted = tables(path)
    assert counted == wanted


def test_a_moved_document_is_counted(index: Index, path: Path, tmp_path: Path) -> None:
    put(index, "a", random.Random(3))
    exported = index.export("id-a")
    assert exported is not None
    other = tmp_path / "other.db"
    with closing(Index(other)) as place:
        place.adopt(exported)
    assert tables(other) == tables(path)
