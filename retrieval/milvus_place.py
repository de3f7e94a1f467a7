"""A Milvus and an SQL database that belong together, opened once for several users. Knows no
document."""

from __future__ import annotations

import threading
from pathlib import Path

from retrieval.catalogue_database import CatalogueDatabase
from retrieval.catalogue_numbers import library_of
from retrieval.milvus_collections import MilvusCollections
from retrieval.milvus_link import MilvusLink


class MilvusPlace:
    """A Milvus and an SQL database that belong together; closed when the last user has closed."""

    def __init__(self, url: str, catalogue: Path | str) -> None:
        """`catalogue` is the file or the URL of the SQL database. Raises RetrievalError."""
        self.link = MilvusLink(url)
        self.database = CatalogueDatabase(catalogue)
        try:
            self.collections = MilvusCollections(self.link, library_of(self.database))
        except BaseException:
            self.database.close()
            raise
        self._users = 0
        self._lock = threading.Lock()

    def hold(self) -> None:
        with self._lock:
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self.link.close()
        self.database.close()
