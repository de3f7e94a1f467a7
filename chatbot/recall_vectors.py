"""Vectors of excerpts: made beside the chat and kept in a file that may be deleted. Knows no turn.

A search never waits for a vector of an excerpt: what has none yet is found by its words alone.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval.database import Database
from retrieval.embed import Embedder, Vectors
from retrieval.types import RetrievalError
from retrieval.words import hangul_share

log = logging.getLogger(__name__)

Kept = NDArray[np.float16]
"""Half precision: half the bytes, and the same figures before and after a restart."""

KEPT_CONVERSATIONS, KEPT_QUERIES = 16, 16
BATCH_TEXTS = 4
"""Texts embedded between two looks at whether to stop, so that a turn waits for no more."""
CLOSE_WAIT_S = 5.0
"""How long closing waits for the model, which may have to be fetched first."""
HANGUL_QUERY = 0.2
"""Above this share of Hangul, the vectors of an English-only model say nothing."""
MOSTLY_HANGUL = 0.5
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    conversation TEXT NOT NULL,
    digest BLOB NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (conversation, digest)
) WITHOUT ROWID
"""


def digest(text: str) -> bytes:
    """What a vector is kept under: the same text in a chat is embedded once."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class RecallVectors:
    """The vectors of all conversations by one embedder. Safe to use from several threads.

    `path` None keeps them in memory only. A file that cannot be used, and a model that cannot be
    loaded, are told to the log once; recall then goes by words.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._known: OrderedDict[str, dict[bytes, Kept]] = OrderedDict()
        self._asked: OrderedDict[str, Vectors] = OrderedDict()
        self._failed = False
        self._waking: threading.Thread | None = None
        self._database = None if path is None else self._opened(path)

    def known(self, conversation_id: str) -> Mapping[bytes, Kept]:
        """The vectors of a conversation's texts by their `digest`. Only grows, or is replaced."""
        with self._lock:
            vectors = self._known.pop(conversation_id, None)
            if vectors is None:
                vectors = self._read(conversation_id)
            self._known[conversation_id] = vectors
            while len(self._known) > KEPT_CONVERSATIONS:
                self._known.popitem(last=False)
            return vectors

    def query(self, text: str) -> Vectors | None:
        """The vector of a question; None where it would say nothing.

        Loads the model if nothing did before, so ask only when there is something to compare.
        """
        if self._failed:
            return None
        with self._lock:
            if text in self._asked:
                return self._asked[text]
        try:
            if self._means_nothing(text, HANGUL_QUERY):  # which the model itself may have to tell
                return None
            vector = self._embedder.embed_query(text)
        except RetrievalError as error:
            self._fail(error)
            return None
        with self._lock:
            self._asked[text] = vector
            while len(self._asked) > KEPT_QUERIES:
                self._asked.popitem(last=False)
        return vector

    @property
    def english_only(self) -> bool:
        return self._embedder.english_only

    def embed(
        self, conversation_id: str, texts: Sequence[str], *, stop: threading.Event | None = None
    ) -> bool:
        """Make the vectors that are missing, in this order. False when stopped or failing."""
        known = self.known(conversation_id)
        wanted = {digest(text): text for text in texts if text}
        missing = [(key, text) for key, text in wanted.items() if key not in known]
        try:
            missing = [item for item in missing if not self._means_nothing(item[1], MOSTLY_HANGUL)]
            for start in range(0, len(missing), BATCH_TEXTS):
                if self._failed or (stop is not None and stop.is_set()):
                    return False
                self._add(conversation_id, missing[start : start + BATCH_TEXTS])
        except RetrievalError as error:
            self._fail(error)
            return False
        return True

    def keep_only(self, conversation_id: str, texts: Sequence[str]) -> None:
        """Drop the vectors of all other texts of a conversation, such as forgotten ones."""
        wanted = {digest(text) for text in texts}
        with self._lock:
            known = self._known.get(conversation_id, {})
            if not known.keys() <= wanted:
                kept = {key: vector for key, vector in known.items() if key in wanted}
                self._known[conversation_id] = kept
        # Those of another model are only in the file.
        gone = self._stored(conversation_id) - wanted
        if gone:
            with self._lock:
                self._asked.clear()
            statement = "DELETE FROM vectors WHERE conversation = ? AND digest = ?"
            self._delete(statement, [(conversation_id, key) for key in gone])

    def forget(self, conversation_id: str) -> None:
        """Drop all vectors of a conversation."""
        with self._lock:
            self._known.pop(conversation_id, None)
            self._asked.clear()
        self._delete("DELETE FROM vectors WHERE conversation = ?", [(conversation_id,)])

    def wake(self) -> None:
        """Load the model in the background if vectors are kept that a question may be compared
        with, so that the first question after a start need not wait for it."""
        if self._waking is None and self._database is not None and self._has_any():
            self._waking = threading.Thread(
                target=self.query, args=("Wake up.",), name="recall-wake", daemon=True
            )
            self._waking.start()

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._waking is not None:
            self._waking.join(CLOSE_WAIT_S)
        if self._database is not None:
            self._database.close()
            self._database = None

    def _means_nothing(self, text: str, most_hangul: float) -> bool:
        share = hangul_share(text)
        return share > most_hangul and self._embedder.english_only

    def _add(self, conversation_id: str, items: list[tuple[bytes, str]]) -> None:
        made = self._embedder.embed_documents([text for _, text in items]).astype(np.float16)
        added = {key: row for (key, _), row in zip(items, made, strict=True)}
        with self._lock:
            self._known.setdefault(conversation_id, {}).update(added)
        if self._database is None:
            return
        name = self._embedder.name
        rows = [(conversation_id, key, name, row.tobytes()) for key, row in added.items()]
        with self._database.write() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def _read(self, conversation_id: str) -> dict[bytes, Kept]:
        if self._database is None:
            return {}
        try:
            with self._database.read() as connection:
                rows = connection.execute(
                    "SELECT digest, vector FROM vectors WHERE conversation = ? AND model = ?",
                    (conversation_id, self._embedder.name),
                ).fetchall()
        except RetrievalError as error:
            self._fail(error)
            return {}
        return {key: np.frombuffer(blob, dtype=np.float16) for key, blob in rows}

    def _has_any(self) -> bool:
        assert self._database is not None
        try:
            with self._database.read() as connection:
                statement = "SELECT 1 FROM vectors WHERE model = ? LIMIT 1"
                row = connection.execute(statement, (self._embedder.name,)).fetchone()
        except RetrievalError as error:
            self._fail(error)
            return False
        return row is not None

    def _stored(self, conversation_id: str) -> set[bytes]:
        if self._database is None:
            return set()
        try:
            with self._database.read() as connection:
                rows = connection.execute(
                    "SELECT digest FROM vectors WHERE conversation = ?", (conversation_id,)
                ).fetchall()
        except RetrievalError as error:
            self._fail(error)
            return set()
        return {key for (key,) in rows}

    def _delete(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if self._database is None:
            return
        try:
            with self._database.write() as connection:
                connection.executemany(statement, rows)
            # What was forgotten must not stay readable in the write-ahead file.
            self._database.checkpoint()
        except RetrievalError as error:
            log.warning("Vectors of old turns could not be deleted: %s", error)

    def _opened(self, path: Path) -> Database | None:
        for again in (True, False):
            try:
                return Database(path, _SCHEMA)
            except RetrievalError as error:
                if again and _is_damaged(error):
                    # Nothing in it is lost: all of it is made again from the turns.
                    for suffix in ("", "-wal", "-shm"):
                        path.with_name(path.name + suffix).unlink(missing_ok=True)
                    continue
                log.warning("Vectors of old turns are kept in memory only: %s", error)
        return None

    def _fail(self, error: RetrievalError) -> None:
        self._failed = True
        log.warning("Old turns are found by their words only: %s", error)


def _is_damaged(error: RetrievalError) -> bool:
    code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
