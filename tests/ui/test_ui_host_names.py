"""Names by which the page is asked for: its own, strangers', and those for other people."""

from __future__ import annotations

import socket

import httpx
import pytest

from chatbot.settings import Settings
from chatbot.ui import host_names
from chatbot.ui.host_names import Refusals, addresses_for_others, known_names
from tests.browser.person import Site


@pytest.fixture(autouse=True)
def a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "NAS.lan")
    monkeypatch.setattr(host_names, "_network_address", lambda: ["192.168.1.5"])


def test_the_machines_own_names_are_known() -> None:
    names = known_names(Settings(host="0.0.0.0", public_host="Chat.example.org"))
    assert {"localhost", "nas.lan", "nas", "nas.local", "chat.example.org"} <= names
    assert "" not in names and "evil.example" not in known_names(Settings())


def test_a_name_that_is_not_known_is_told_what_to_do(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        told = httpx.get(site.url, headers={"Host": "files.lan:80"}, trust_env=False)
        assert told.status_code == 403 and "--public-host files.lan" in told.text
    korean = {"Host": "files.lan", "Accept-Language": "ko"}
    assert "여세요" in httpx.get(site.url, headers=korean, trust_env=False).text
    assert capsys.readouterr().out.count("--public-host files.lan") == 1


def test_names_of_strangers_fill_no_terminal() -> None:
    told: list[str] = []
    refusals = Refusals(told.append)
    page = refusals.of_name("a\x1b[31m<b>" + 500 * "x", "")
    assert "\x1b" not in told[0] and "<" not in page and len(page) < 400
    for number in range(100):
        refusals.of_name(f"{number}.example", "")
    assert len(told) == host_names.MAX_TOLD


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, []),
        ({"host": "0.0.0.0"}, ["http://NAS.lan:80/", "http://192.168.1.5:80/"]),
        ({"host": "10.0.0.7"}, ["http://10.0.0.7:80/"]),
        ({"host": "fd00::1"}, ["http://[fd00::1]:80/"]),
        ({"host": "0.0.0.0", "public_host": "chat.lan"}, ["http://chat.lan:80/"]),
        ({"host": "0.0.0.0", "behind_proxy": True}, []),
    ],
)
def test_addresses_for_other_people(settings: dict[str, object], shown: list[str]) -> None:
    assert addresses_for_others(Settings(**settings), 80) == shown
