"""The start of the page's server where a proxy is set, and on a machine that is slow."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from gradio import http_server, networking

from chatbot.ui.opening import spare_own_addresses
from tests.browser.person import Site

NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for spelling in (name, name.upper()):
            # Set first, so that what a test leaves there goes away.
            monkeypatch.setenv(spelling, "")
            monkeypatch.delenv(spelling)


def test_the_page_opens_with_a_proxy_and_on_a_slow_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_slow(*args: object, **options: object) -> None:
        raise httpx.ReadTimeout("three seconds are over")

    seconds = itertools.count(step=10.0)
    clock = SimpleNamespace(time=lambda: next(seconds), sleep=time.sleep)
    monkeypatch.setattr(networking.httpx, "head", too_slow)
    monkeypatch.setattr(http_server, "time", clock)
    monkeypatch.setenv("http_proxy", NOBODY)
    site = Site(tmp_path)
    try:
        assert httpx.get(f"{site.url}healthz", trust_env=False).status_code == 200
    finally:
        site.close()


def test_own_addresses_are_added_to_those_without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", NOBODY)
    monkeypatch.setenv("NO_PROXY", "models.example, localhost")
    spare_own_addresses("10.0.0.7")
    spared = "models.example,localhost,127.0.0.1,::1,10.0.0.7"
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == spared


@pytest.mark.parametrize("settings", [{}, {"http_proxy": NOBODY, "no_proxy": "*"}])
def test_without_proxies_the_environment_stays(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    spare_own_addresses("127.0.0.1")
    assert dict(os.environ) == before
