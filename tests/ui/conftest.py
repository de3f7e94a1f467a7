"""One server over the scripted engine for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.browser.person import Site


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
