"""How scripts come in where people log in: keys and passwords, and what each opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AuthenticationError

from chatbot.api.keys import FILE, Limits, add_key
from chatbot.users import add_user
from tests.api_rig import FREE, Api
from tests.conftest import ROOT
from tests.ui.client import call, trigger

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder: Path = tmp_path_factory.mktemp("scripts")
    for name in ("anna", "bora", "carl"):
        add_user(folder / "users.txt", name, PASSWORD)
    add_key(folder / FILE, "first", user="", limits=FREE, created="")
    running = Api(folder, auth=folder / "users.txt")
    yield running
    running.close()


@pytest.fixture(scope="module")
def keys(site: Api) -> dict[str, str]:
    return {name: f"Bearer {site.key(f'{name}-key', name)}" for name in ("anna", "bora")}


def with_key(site: Api, key: str) -> httpx.Client:
    headers = {"Authorization": key}
    return httpx.Client(base_url=site.url, headers=headers, timeout=20, trust_env=False)


def by_mcp(client: httpx.Client, tool: str, **arguments: str) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = client.post("mcp", json=message)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["result"]
    return found


def chats_of(site: Api, name: str) -> dict[str, str]:
    """First questions by the ids of a person's chats."""
    store = site.handle._persons.of(name).store
    return {c.id: store.load(c.id).turns[0].question for c in store.list_conversations()}


def client_of(site: Api, **given: Any) -> Client:
    return Client(site.url, verbose=False, analytics_enabled=False, **given)


def test_a_script_with_a_key_has_the_chats_of_its_person_only(
    site: Api, keys: dict[str, str]
) -> None:
    anna = client_of(site, headers={"Authorization": keys["anna"]})
    answer = anna.predict("Anna's question", api_name="/ask")
    assert "A plain reply" in answer["answer"]
    assert chats_of(site, "anna") == {answer["conversation"]: "Anna's question"}
    assert chats_of(site, "") == chats_of(site, "bora") == {}
    with with_key(site, keys["bora"]) as bora:
        for name in ("ask", "context"):
            stolen = by_mcp(bora, name, question="x", conversation=answer["conversation"])
            assert stolen["isError"]
            how, _ = call(bora, name, "x", answer["conversation"])
            assert how == "error"
        assert "structuredContent" in by_mcp(bora, "ask", question="Bora's question")
    assert list(chats_of(site, "bora").values()) == ["Bora's question"]
    with with_key(site, keys["anna"]) as tool:
        trace = by_mcp(tool, "context", question="More", conversation=answer["conversation"])
    pieces = trace["structuredContent"]["segments"]
    assert "Anna's question" in "".join(piece["text"] for piece in pieces)


def test_gradio_client_logs_in_with_a_password(site: Api) -> None:
    carl = client_of(site, auth=("carl", PASSWORD))
    answer = carl.predict("Carl's question", api_name="/ask")
    assert chats_of(site, "carl") == {answer["conversation"]: "Carl's question"}
    with pytest.raises(AuthenticationError):
        client_of(site, auth=("carl", "wrong horse"))
    with httpx.Client(base_url=site.url, trust_env=False) as plain:
        assert plain.get("login").status_code == 401
        elsewhere = {"Origin": "http://evil.example"}
        given = {"username": "carl", "password": PASSWORD}
        assert plain.post("login", data=given, headers=elsewhere).status_code == 403
        assert plain.post("login", data={"username": "carl"}).status_code == 401
        assert plain.post("login", data=given).json() == {"success": True}
        assert plain.get("config").status_code == 200


@pytest.mark.parametrize("key", ["", "Bearer sk-local-wrong", "Basic YTpi", "Bearer something"])
def test_without_a_right_key_a_script_is_told_what_to_send(site: Api, key: str) -> None:
    with with_key(site, key) as script:
        for method, path in (
            ("POST", "mcp"), ("GET", "config"), ("GET", "gradio_api/info"),
            ("POST", "gradio_api/call/ask"), ("POST", "gradio_api/queue/join"),
        ):  # fmt: skip
            answer = script.request(method, path)
            assert answer.status_code == 401, path
            assert "Authorization: Bearer KEY" in answer.text and "key add" in answer.text


def test_a_key_opens_nothing_else_of_the_page(site: Api, keys: dict[str, str]) -> None:
    chat = site.handle._persons.of("anna").store.create_conversation().id
    with with_key(site, keys["anna"]) as script:
        for path in ("", "local/upload", "theme.css", "gradio_api/component_server"):
            assert script.post(path).status_code == 401
        # The queue takes it; the page's own handlers ask for a session.
        seen = trigger(script, "act", {"act": "delete", "id": chat}, "script-tab")
        assert seen[-1]["success"] is False
    assert site.handle._persons.of("anna").store.load(chat).id == chat


def test_nobody_hears_what_is_sent_to_the_script_of_another(
    site: Api, keys: dict[str, str]
) -> None:
    anna = client_of(site, headers={"Authorization": keys["anna"]})
    anna.predict("Something secret", api_name="/context")
    address = f"gradio_api/queue/data?session_hash={anna.session_hash}"
    with with_key(site, keys["bora"]) as bora, bora.stream("GET", address) as heard:
        assert heard.status_code == 403


def test_the_limits_of_a_key_hold_for_scripts_too(site: Api) -> None:
    limits = Limits(requests_per_minute=2, tokens_per_day=0, parallel=0)
    few = f"Bearer {site.key('few', 'bora', limits)}"
    short = f"Bearer {site.key('short', 'bora', Limits(0, 1, 0))}"
    with with_key(site, few) as script:
        assert call(script, "context", "One", "")[0] == "complete"
        assert not by_mcp(script, "context", question="Two").get("isError")
        assert "2 requests a minute" in str(by_mcp(script, "context", question="Three"))
        assert "2 requests a minute" in str(call(script, "context", "Four", ""))
    with with_key(site, short) as script:
        assert not by_mcp(script, "ask", question="One").get("isError")
        assert "used up" in str(by_mcp(script, "ask", question="Two"))


def test_the_documents_say_how_scripts_get_in() -> None:
    api = (ROOT / "docs" / "api.md").read_text("utf-8")
    place = api[api.index("## Scripts and MCP") : api.index("## Without a conversation")]
    for words in ("Authorization: Bearer", 'auth=("anna"', "/mcp", "--api", "--user", "limits"):
        assert words in place, words
    assert "docs/api.md#scripts-and-mcp" in (ROOT / "README.md").read_text("utf-8")
