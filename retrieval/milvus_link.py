"""The way to a Milvus server or file: address, connection, failures as sentences. Knows no
collection.

`pymilvus` takes a second to import, so that is done at the first connection. It sends nothing to
anybody but the server of the address.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from retrieval.milvus_import import import_milvus
from retrieval.types import IndexAwayError, RetrievalError

FILE_SUFFIX = ".db"
CONNECT_S = 5.0
READ_S = 5.0
"""How long a search waits for a server that does not answer."""
FILE_READ_S = 300.0
"""The same for a file, which answers always, but makes its index at the first question."""
WRITE_S = 60.0
REST_S = 5.0
"""After a failed call, so long no other one is tried: a chat must not wait at each question."""
T = TypeVar("T")
# milvus-lite hangs up on who asks every ten seconds whether it is still there.
_FILE_CHANNEL = {"grpc.keepalive_time_ms": 3_600_000, "grpc.enable_http_proxy": 0}
_files_in_use: Counter[str] = Counter()
"""One server thread serves all who use a file in this process; the last one ends it."""
_files_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Address:
    """Where Milvus is. `shown` may stand in messages: no password is in it."""

    uri: str
    shown: str
    token: str = ""
    database: str = ""

    @property
    def is_file(self) -> bool:
        return not self.uri.startswith(("http://", "https://"))


def parse_address(url: str) -> Address:
    """`http(s)://[user:password@ or token@]host[:port][/database]`, or a path that ends in .db.

    Raises RetrievalError with a sentence for anything else.
    """
    if not url.startswith(("http://", "https://")):
        if "://" in url or not url.endswith(FILE_SUFFIX):
            message = (
                "The vector URL must be the address of a Milvus server, such as "
                f"http://host:19530, or a file that ends in {FILE_SUFFIX}; correct --vector-url."
            )
            raise RetrievalError(message)
        path = str(Path(url).expanduser().absolute())
        return Address(path, path)
    try:
        parts = urlsplit(url)
        port = parts.port or 19530
    except ValueError as error:
        message = "The host or the port cannot be read; correct --vector-url."
        raise RetrievalError(message) from error
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    token = f"{user}:{password}" if user and password else user or password
    uri = f"{parts.scheme}://{parts.hostname or 'localhost'}:{port}"
    return Address(uri, uri, token, parts.path.strip("/"))


class MilvusLink:
    """A connection that comes back by itself. Thread-safe.

    A server that is away costs one waiting call, then none for `REST_S`; the next one after that
    tries again. `epoch` counts connections, so that who has prepared something on one can tell.
    """

    def __init__(self, url: str) -> None:
        self.address = parse_address(url)
        self.epoch = 0
        self._client: Any = None
        self._lock = threading.Lock()
        self._rest_until = 0.0
        self._closed = False

    @property
    def read_s(self) -> float:
        """How long a search may take."""
        return FILE_READ_S if self.address.is_file else READ_S

    def call(self, action: Callable[[Any], T]) -> T:
        """Run `action` on a `MilvusClient`. Raises RetrievalError for all that goes wrong."""
        client = self._connected()
        from grpc import RpcError
        from pymilvus import MilvusException

        try:
            return action(client)
        except (MilvusException, RpcError, ConnectionError) as error:
            if _is_away(error):
                self._drop(client)
                raise IndexAwayError(away_sentence(self.address)) from error
            message = f"Milvus at {self.address.shown} refused a request ({_reason(error)})."
            raise RetrievalError(message) from error

    def close(self) -> None:
        """Let go of the server; the last one to use a file in this process ends its server."""
        with self._lock:
            closed, self._closed = self._closed, True
            client, self._client = self._client, None
        if client is not None and not closed:
            _close(client, self.address)

    def _connected(self) -> Any:
        with self._lock:
            if self._closed:
                raise RetrievalError("The document library is closed.")
            if self._client is None:
                if time.monotonic() < self._rest_until:
                    raise IndexAwayError(away_sentence(self.address))
                try:
                    self._client = _open(self.address)
                except RetrievalError:
                    self._rest_until = time.monotonic() + REST_S
                    raise
                self.epoch += 1
            return self._client

    def _drop(self, client: Any) -> None:
        with self._lock:
            if self._client is not client:
                return
            self._client = None
            self._rest_until = time.monotonic() + REST_S
        _close(client, self.address)


def away_sentence(address: Address) -> str:
    """What is wrong when nobody answers, and what to do."""
    return (
        f"The document index in Milvus at {address.shown} does not answer; see that it runs "
        "and --vector-url is right. Nothing is lost, and documents are used again when it answers."
    )


def _open(address: Address) -> Any:
    MilvusClient, MilvusException = import_milvus(for_file=address.is_file)
    if address.is_file:
        _hold_file(address)
    try:
        return MilvusClient(
            address.uri,
            token=address.token,
            db_name=address.database,
            timeout=CONNECT_S,
            dedicated=True,
            grpc_options=_FILE_CHANNEL if address.is_file else {},
        )
    except MilvusException as error:
        if not address.is_file:
            if _is_away(error):
                raise IndexAwayError(away_sentence(address)) from error
            message = f"Milvus at {address.shown} lets nobody in ({_reason(error)})."
            raise RetrievalError(message) from error
        _release_file(address)
        raise RetrievalError(
            f"The vector file {address.shown} cannot be opened: another process has it open, or "
            "it is damaged. For several processes, give --vector-url the address of a server."
        ) from error


def _hold_file(address: Address) -> None:
    try:
        if not Path(address.uri).exists():  # a folder, which others are not to read
            Path(address.uri).mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise RetrievalError(f"The vector file's folder cannot be made ({error}).") from error
    with _files_lock:
        _files_in_use[address.uri] += 1


def _release_file(address: Address) -> None:
    with _files_lock:
        _files_in_use[address.uri] -= 1
        if _files_in_use[address.uri] > 0:
            return
        del _files_in_use[address.uri]
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(address.uri)


def _close(client: Any, address: Address) -> None:
    client.close()
    if address.is_file:
        _release_file(address)


def _is_away(error: Exception) -> bool:
    """Whether nobody answered, or too late, rather than said no."""
    code = getattr(error, "code", None)
    name = getattr(code() if callable(code) else code, "name", "")
    text = str(error).lower()
    return (
        isinstance(error, ConnectionError)
        or name in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")
        or any(sign in text for sign in ("fail connecting", "timeout", "closed channel"))
    )


def _reason(error: Exception) -> str:
    """The first line of what the server said: the rest may quote rows."""
    text = str(getattr(error, "message", "") or error) or type(error).__name__
    return text.splitlines()[0][:200]
