"""The environment's proxy and the server of the replies: passed by on this machine, named else."""

from __future__ import annotations

from pathlib import Path

import pytest
from peer_server import Peer
from remote_rig import remote_engine

from chatbot.engine.remote_proxy import is_here, proxy_hint
from chatbot.errors import ChatbotError
from chatbot.ui.sentences import in_language

NOBODY = "http://someone:secret@127.0.0.1:9"


@pytest.fixture(autouse=True)
def a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("http_proxy", NOBODY)


def test_a_server_on_this_machine_is_asked_without_the_proxy(tmp_path: Path) -> None:
    peer = Peer("vLLM", tmp_path)
    try:
        engine = remote_engine(peer.url)
        assert engine.info.model
        engine.close()
    finally:
        peer.stop()


def test_a_failed_connection_names_the_proxy_but_not_its_password() -> None:
    with pytest.raises(ChatbotError, match="the proxy that http_proxy names") as caught:
        remote_engine("http://models.example:8000/v1")
    assert "add models.example to no_proxy" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "프록시" in in_language("ko", str(caught.value))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_addresses_of_this_machine(host: str) -> None:
    assert is_here(f"http://{host}:8000/v1") and not proxy_hint(f"http://{host}:8000/v1")


def test_no_hint_where_the_request_goes_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not proxy_hint("https://models.example/v1")
    monkeypatch.setenv("no_proxy", "models.example")
    assert not proxy_hint("http://models.example/v1")
