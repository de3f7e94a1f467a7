"""Keeps processes apart that get the same file at the same time, by claims in the database of the
conversations. Knows no document and no file."""

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from chatbot.errors import StoreError
from chatbot.store import Store
from retrieval.claims import Claim

log = logging.getLogger(__name__)


def claim_uploads(store: Store, folder: Path | None) -> Claim:
    """Claims for the library of a store's owner: in a folder of this machine, or, with None, one
    that all processes at the database share.

    Without the database nobody waits: the library keeps versions of a document apart by itself,
    and only work is done twice.
    """
    place = "" if folder is None else f"{socket.gethostname()}:{folder.absolute()}"
    prefix = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @contextmanager
    def claim(name: str) -> Iterator[bool]:
        with ExitStack() as stack:
            try:
                is_mine = stack.enter_context(store.claimed("upload", f"{prefix}/{name}"))
            except StoreError as error:
                log.info("A file is taken in without a claim: %s", error)
                is_mine = True
            yield is_mine

    return claim
