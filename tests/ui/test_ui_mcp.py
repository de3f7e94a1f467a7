"""The tools for programs that speak MCP: what they are told, what they get, what is refused."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.browser.person import Site


def rpc(client: httpx.Client, method: str, params: object = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    answer = client.post("mcp", json=message, headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["id"] == 7
    return found


def test_a_program_is_greeted_asks_and_sees_the_prompt(client: httpx.Client, site: Site) -> None:
    greeting = rpc(client, "initialize", {"protocolVersion": "2025-03-26", "capabilities": {}})
    assert greeting["result"]["protocolVersion"] == "2025-03-26"
    assert greeting["result"]["capabilities"] == {"tools": {}}
    ready = client.post("mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (ready.status_code, ready.content) == (202, b"")
    assert rpc(client, "ping")["result"] == {}
    tools = rpc(client, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["ask", "context"]
    assert all(tool["description"] and tool["inputSchema"]["required"] for tool in tools)
    called = {"name": "ask", "arguments": {"question": "Hello there"}}
    result = rpc(client, "tools/call", called)["result"]
    answer = result["structuredContent"]
    assert answer["answer"] == "A plain reply." and not result.get("isError")
    assert json.loads(result["content"][0]["text"]) == answer
    assert site.services.store.load(answer["conversation"]).turns[0].question == "Hello there"
    more = {"question": "And now?", "conversation": answer["conversation"]}
    trace = rpc(client, "tools/call", {"name": "context", "arguments": more})["result"]
    assert any(p["kind"] == "turn" for p in trace["structuredContent"]["segments"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"question": ""}, "empty"),
        ({"question": 7}, "empty"),
        ({}, "empty"),
        ({"question": "x", "conversation": "nowhere"}, "no conversation"),
    ],
)
def test_what_cannot_be_asked_is_told_to_the_model(
    client: httpx.Client, arguments: dict[str, object], words: str
) -> None:
    result = rpc(client, "tools/call", {"name": "ask", "arguments": arguments})["result"]
    assert result["isError"] and words in result["content"][0]["text"]


def test_odd_messages_are_refused(client: httpx.Client) -> None:
    assert rpc(client, "resources/list")["error"]["code"] == -32601
    for params in ({"name": "delete", "arguments": {}}, {"name": "ask"}, "ask", None):
        assert rpc(client, "tools/call", params)["error"]["code"] == -32602
    for body in (b"", b"[]", b"{", b"\xff", b" " * 1_100_000):
        assert client.post("mcp", content=body).status_code == 400
    assert client.get("mcp").status_code == 405
    elsewhere = {"origin": "http://evil.example"}
    assert client.post("mcp", content=b"{}", headers=elsewhere).status_code == 403
