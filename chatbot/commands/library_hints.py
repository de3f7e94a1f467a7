"""Says that the library holds documents which are not used here. Opens no library by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing

from chatbot.commands.common import counted
from chatbot.settings import Settings
from retrieval.load import document_name
from retrieval.types import DocumentInfo

SHOWN = 5


def stored_documents(settings: Settings) -> int:
    """How many documents the data folder's library holds; 0 where they are kept elsewhere.

    Counted without opening the library, which would take the embedding model.
    """
    path = settings.data_dir / "library" / "index.db"
    if settings.vector_url is not None or not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM documents").fetchone()[0])
    except sqlite3.Error:
        return 0  # a hint is not worth an error; whoever opens the library will say what is wrong


def unused_here(infos: Collection[DocumentInfo], used: Collection[str]) -> str:
    """A sentence on the documents that a chat does not use; "" if it uses all there are."""
    names = [info.name for info in infos if info.id not in used]
    if not names:
        return ""
    more = ", …" if len(names) > SHOWN else ""
    return (
        f"The library has {counted(len(names), 'document')} that this chat does not use "
        f"({', '.join(names[:SHOWN])}{more}); /add NAME uses one."
    )


def found_by_name(infos: Collection[DocumentInfo], name: str) -> dict[str, str]:
    """The id of the document of a name, by that name; {} if there is none."""
    names = {name, document_name(name)}
    return {info.name: info.id for info in infos if info.name in names}
