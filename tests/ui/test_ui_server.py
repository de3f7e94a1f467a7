"""The server of the page, asked without a browser: hosts, origins, files, claims, scripts."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client
from starlette.types import Message

from chatbot.errors import SettingsError
from chatbot.store import Store
from chatbot.ui.closing import until_closing
from chatbot.ui.host_names import asked_name
from chatbot.ui.inbox import COOKIE, cookie_of
from chatbot.ui.security import require_login
from chatbot.ui.server import launch
from tests.browser.person import Site, until
from tests.ui.client import Wire, call, put, trigger


def test_the_page_comes_with_its_policy_and_a_mark_for_the_browser(client: httpx.Client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "https:" not in policy and "*" not in policy
    assert client.cookies.get(COOKIE)
    fresh = httpx.get(str(client.base_url), trust_env=False).headers["set-cookie"]
    assert "HttpOnly" in fresh and "SameSite=Strict" in fresh


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7860", "127.0.0.1.evil.example", ""]
)
def test_other_host_names_are_refused(client: httpx.Client, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
def test_requests_of_other_sites_are_refused(client: httpx.Client, origin: str) -> None:
    assert put(client, "a.txt", b"x", Origin=origin).status_code == 403
    joined = client.post("gradio_api/queue/join", json={}, headers={"Origin": origin})
    assert joined.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "gradio_api/file=/etc/passwd",
        "gradio_api/file=../../etc/passwd",
        "gradio_api/file=%2e%2e%2f%2e%2e%2fetc/passwd",
        "gradio_api/file=pyproject.toml",
        "gradio_api/file%3D/etc/passwd",
        "/gradio_api/file=/etc/passwd",
        "file=/etc/passwd",
        "gradio_api/file/../../etc/passwd",
        "gradio_api/proxy=http://example.invalid/",
        "static/../../../etc/passwd",
        "assets/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_no_route_serves_files(client: httpx.Client, path: str) -> None:
    """BC-82: no path leads out, however it is written; held by this version of the library."""
    assert version("gradio") == "6.31.0"
    answer = client.get(path)
    assert answer.status_code in (400, 403, 404, 405)
    assert "root:" not in answer.text


def test_data_of_the_program_is_not_served(client: httpx.Client, site: Site) -> None:
    """BC-82, BC-85: settings, index and uploads stay inside."""
    for file in ("chats.db", "library/index.db"):
        path = site.settings.data_dir / file
        assert path.exists()
        assert client.get(f"gradio_api/file={path}").status_code == 403


def test_the_librarys_own_upload_is_closed(client: httpx.Client) -> None:
    assert client.post("gradio_api/upload", files={"files": b"x"}).status_code == 403


@pytest.mark.parametrize(
    "data",
    [
        {"act": "open", "id": "../../etc/passwd"},
        {"act": "open", "id": "not-there"},
        {"act": "rename", "id": 7, "title": None},
        {"act": "delete", "id": "a' OR 1=1 --"},
        {"act": "use", "id": "no-document", "on": True},
        {"act": "remove", "id": ["x"]},
        {"act": "__init__"},
        {"act": None},
    ],
)
def test_claims_made_by_hand_do_no_harm(
    client: httpx.Client, site: Site, data: dict[str, Any]
) -> None:
    before = site.services.store.list_conversations()
    assert trigger(client, "act", data)[-1]["success"] is True
    assert site.services.store.list_conversations() == before


def test_cookies_and_hosts_that_make_no_sense_are_none() -> None:
    assert cookie_of("%%%;;=") == "" and cookie_of(f"{COOKIE}=abc; x=1") == "abc"
    assert asked_name("[::1]:80") == "::1" and asked_name("[bad") == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", ""])
def test_addresses_outside_this_machine_are_refused_with_a_sentence(host: str) -> None:
    with pytest.raises(SettingsError, match="could read your chats"):
        require_login(host, has_users=False)
    require_login(host, has_users=True)


def test_loopback_addresses_are_fine() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        require_login(host, has_users=False)


def test_a_taken_port_is_told(site: Site) -> None:
    port = int(site.url.rstrip("/").rsplit(":", 1)[1])
    with pytest.raises(SettingsError, match=f"Port {port} is taken"):
        launch(site.services, port=port)


def test_forwarded_headers_of_strangers_do_not_count(client: httpx.Client) -> None:
    said = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    assert "evil.example" not in client.get("/", headers=said).text
    assert "evil.example" not in client.get("config", headers=said).text


def test_scripts_can_ask_and_see_prompts_and_nothing_else(client: httpx.Client, site: Site) -> None:
    named = client.get("gradio_api/info").json()["named_endpoints"]
    assert set(named) == {"/ask", "/context"}
    how, [answer] = call(client, "ask", "Hello there", "")
    assert how == "complete" and answer["answer"] == "A plain reply."
    stored = site.services.store.load(answer["conversation"])
    assert stored.turns[0].question == "Hello there" and answer["usage"]["completion_tokens"]
    how, [trace] = call(client, "context", "And now?", answer["conversation"])
    assert trace["prompt_tokens"] == sum(piece["tokens"] for piece in trace["segments"])
    assert any(piece["kind"] == "turn" for piece in trace["segments"])
    for bad in (["", ""], ["x", "../../etc"], [7, ""]):
        assert call(client, "context", *bad)[0] == "error"
        assert call(client, "ask", *bad)[0] == "error"


def test_a_question_that_is_refused_begins_no_chat(client: httpx.Client, site: Site) -> None:
    services = site.services
    store, usual = services.store, services.chat.settings
    before, n_documents = store.list_conversations(), len(services.library.documents())
    wire = Wire(client, "refused")
    services.chat.change_settings(usual.model_copy(update={"system_prompt": "word " * 9000}))
    try:
        wire.send("Hello from the page")
        assert "too many" in wire.heard
        *_, last = wire.heard.split('"process_generating"')
        assert "Hello from the page" in last, "the person gets the text back"
        assert call(client, "ask", "Hello from a script", "")[0] == "error"
        assert store.list_conversations() == before
    finally:
        services.chat.change_settings(usual)
    # What was there before stays, as does what is not empty.
    kept = store.create_conversation("A name")
    services.chat.change_settings(usual.model_copy(update={"system_prompt": "word " * 9000}))
    try:
        wire.chat = kept.id
        wire.send("Hello again")
    finally:
        services.chat.change_settings(usual)
    assert store.load(kept.id).turns == () and not store.drop_if_empty(kept.id)
    wire.chat = ""
    wire.send("Hello at last")
    newest = max(store.list_conversations(), key=lambda info: info.updated)
    assert store.load(newest.id).turns[0].question == "Hello at last"
    assert len(services.library.documents()) == n_documents


def test_scripts_may_leave_the_conversation_out(site: Site) -> None:
    store = site.services.store
    before = len(store.list_conversations())
    script = Client(site.url, verbose=False, analytics_enabled=False)
    trace = script.predict("Hello there", api_name="/context")
    assert [piece["kind"] for piece in trace["segments"]] == ["system", "question"]
    assert len(store.list_conversations()) == before
    answer = script.predict("Hello there", api_name="/ask")
    assert store.load(answer["conversation"]).turns[0].reply == answer["answer"]
    again = script.predict("More", conversation=answer["conversation"], api_name="/ask")
    assert again["conversation"] == answer["conversation"]


def test_a_server_with_an_open_stream_ends_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The page keeps one open as long as anything runs in its tab."""
    own = Site(tmp_path)
    with httpx.Client(base_url=own.url, timeout=15, trust_env=False) as client:
        wire = Wire(client, tab="waits")
        with ThreadPoolExecutor(1) as other:
            ended = other.submit(wire.send, "Hello script:stall")
            until(lambda: "word3" in wire.heard, "the reply stalls")
            began = time.monotonic()
            own.close()
            took_s = time.monotonic() - began
            with suppress(httpx.HTTPError):
                ended.result(30)
    # A stream that nobody wakes keeps the server for ten seconds, of which five are waited for.
    assert took_s < 4
    assert "without completing" not in "".join(capfd.readouterr())
    with Store(tmp_path / "chats.db") as store:
        [chat] = store.list_conversations()
        assert "word3" in store.load(chat.id).turns[0].reply


def test_a_server_that_ends_says_so_and_breaks_off_no_body(site: Site) -> None:
    closing = site.handle._closing
    closing.set()
    try:
        for path in ("", "config", "gradio_api/queue/join"):
            answer = httpx.post(f"{site.url}{path}", json={}, trust_env=False)
            assert answer.status_code == 503 and answer.headers["x-chat-ended"]
        parts = iter([{"type": "http.request", "more_body": True}, {"type": "http.request"}])

        async def receive() -> Message:
            return next(parts)

        async def heard() -> list[str]:
            guarded = until_closing(closing, receive)
            return [(await guarded())["type"] for _ in range(3)]

        with ThreadPoolExecutor(1) as other:  # Playwright's loop runs on in this one
            types = other.submit(asyncio.run, heard()).result()
        assert types == ["http.request", "http.request", "http.disconnect"]
    finally:
        closing.clear()
