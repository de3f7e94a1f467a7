"""One server over the scripted engine for the tests of a file, or the page's handlers alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from chatbot.engine.base import Engine
from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.ui.calls import Call
from chatbot.ui.handlers import Handlers
from chatbot.ui.inbox import Inbox
from tests.browser.person import Site
from tests.ui.samples import TAB


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    running = Site(tmp_path_factory.mktemp("server"), max_upload_mb=1)
    yield running
    running.close()


@pytest.fixture
def client(site: Site) -> Iterator[httpx.Client]:
    """One browser, with the mark that the page gives it."""
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as made:
        made.get("/")
        yield made


@pytest.fixture
def services(tmp_path: Path, engine: Engine) -> Iterator[Services]:
    """Everything but the page, over the engine that the file of tests makes."""
    settings = Settings(data_dir=tmp_path, embedding_model="none")
    with closing(build_services(settings, engine=engine)) as services:
        yield services


@pytest.fixture
def page(services: Services, tmp_path: Path) -> Iterator[Handlers]:
    """The handlers of a page that the tab `TAB` has opened."""
    made = Handlers(services, Inbox(tmp_path / "incoming", 1000))
    made.load(Call(TAB, "", ""), "en", "")
    yield made
    made.close()
