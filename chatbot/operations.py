"""Whether this process is healthy and ready, and its figures for Prometheus. Knows no server."""

from __future__ import annotations

import importlib.util
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chatbot.engine.reach import state_now
from chatbot.errors import SettingsError, StoreError
from chatbot.services import Services
from chatbot.settings import Settings
from retrieval.milvus_index import MilvusIndex
from retrieval.missing import needs_package

DOCUMENTS = "documents"
"""Without Milvus, replies are made all the same, and say that they know no documents."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a reply needs, by name; "ok" or what is the matter, without any detail."""

    parts: Mapping[str, str]

    @property
    def is_ready(self) -> bool:
        return all(state == "ok" for name, state in self.parts.items() if name != DOCUMENTS)


def readiness(services: Services) -> Readiness:
    """Whether a question would be answered now. Takes as long as the database needs, and up to 2
    seconds for a model on another machine."""
    try:
        services.store.check()
        store = "ok"
    except StoreError:
        store = "unreachable"
    parts = {"store": store, "engine": state_now(services.engine)}
    documents = services.library.store
    if isinstance(documents, MilvusIndex):
        parts[DOCUMENTS] = "ok" if documents.answers() else "unreachable"
    return Readiness(parts)


def scratch_folder(settings: Settings) -> Path:
    """Where files lie that are of use to this process only.

    Processes that share a database may share a data folder, too, on machines or in containers
    whose process ids say nothing to each other; so each machine has a folder of its own there.
    """
    if settings.database_url is None:
        return settings.data_dir
    return settings.data_dir / "replicas" / f"{socket.gethostname()}-{settings.port}"


def check_settings(settings: Settings) -> None:
    """Raises SettingsError when figures are wanted that cannot be given."""
    if settings.metrics_token is None:
        return
    if importlib.util.find_spec("prometheus_client") is None:
        raise SettingsError(needs_package("--metrics-token", "prometheus-client"))


def may_read_metrics(settings: Settings, authorization: str) -> bool:
    """Whether an Authorization header is the one that Prometheus is to send."""
    if settings.metrics_token is None:
        return False
    expected = f"Bearer {settings.metrics_token.get_secret_value()}"
    # A server reads headers letter by letter from their bytes; a token may have others than ASCII.
    given = authorization.encode("latin-1", "replace")
    return secrets.compare_digest(given, expected.encode())
