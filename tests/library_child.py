"""A process to be killed: changes a library as it is told, one document at a time."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

from retrieval.chunk_store import ChunkStore
from retrieval.embed import ScriptedEmbedder
from retrieval.pipeline import Library


def open_library(folder: Path, vector_url: str = "") -> Library:
    """In the folder alone, or with its chunks and vectors in Milvus."""
    embedder = ScriptedEmbedder(dimensions=32)
    store: ChunkStore | None = None
    if vector_url:
        from retrieval.milvus_index import open_milvus_index  # a child is started often

        store = open_milvus_index(vector_url, folder / "catalogue.db", embedder=embedder.name)
    return Library(
        folder,
        embedder=embedder,
        count_tokens=lambda text: len(text.split()),
        chunk_min_tokens=20,
        chunk_max_tokens=40,
        store=store,
    )


def change(library: Library, file: Path | None, name: str) -> None:
    """Put a file under a name, or delete what has that name."""
    if file is not None:
        report = library.ingest(file, name=name)
        assert report.status in ("indexed", "unchanged"), report.message
        return
    for info in library.documents():
        if info.name == name:
            library.delete(info.id)


def work(connection: Connection, folder: Path, vector_url: str) -> None:
    library = open_library(folder, vector_url)
    connection.send("ready")
    while True:
        file, name = connection.recv()
        connection.send("busy")
        change(library, file, name)
        connection.send("done")
