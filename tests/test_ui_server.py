"""The server of the page, asked without a browser: hosts, origins, files, uploads, bad claims."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chatbot.errors import SettingsError
from chatbot.ui.calls import Call, rejected_of
from chatbot.ui.inbox import COOKIE, Inbox, clean_name, cookie_of, suffix_of
from chatbot.ui.security import host_name, require_login
from chatbot.ui.server import launch
from tests.browser.person import Site

UPLOAD = "local/upload"
SECRET = "the secret of another file"


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


def put(client: httpx.Client, name: str, data: bytes, **headers: str) -> httpx.Response:
    given = {"X-File-Name": name, "Content-Type": "application/octet-stream", **headers}
    return client.post(UPLOAD, content=data, headers=given)


def waiting_files(site: Site) -> list[Path]:
    """Every file of an upload that is still kept."""
    return [p for p in (site.settings.data_dir / "incoming").rglob("*") if p.is_file()]


def trigger(
    client: httpx.Client, event: str, data: dict[str, Any], tab: str = "byhand"
) -> list[dict[str, Any]]:
    """Call a private endpoint by hand, as anyone can; returns what the server says."""
    config = client.get("config").json()
    bridge = next(c["id"] for c in config["components"] if c["props"].get("elem_id") == "bridge")
    index = next(d["id"] for d in config["dependencies"] if [bridge, event] in d["targets"])
    joined = client.post(
        "gradio_api/queue/join",
        json={"data": [""], "fn_index": index, "session_hash": tab, "event_data": data},
    )
    assert joined.status_code == 200, joined.text
    seen: list[dict[str, Any]] = []
    with client.stream("GET", f"gradio_api/queue/data?session_hash={tab}") as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                seen.append(json.loads(line[5:]))
                if seen[-1]["msg"] == "process_completed":
                    break
    return seen


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
    answer = client.get(path)
    assert answer.status_code in (400, 403, 404, 405)
    assert "root:" not in answer.text


def test_data_of_the_program_is_not_served(client: httpx.Client, site: Site) -> None:
    for file in ("chats.db", "library/index.db"):
        path = site.settings.data_dir / file
        assert path.exists()
        assert client.get(f"gradio_api/file={path}").status_code == 403


def test_the_librarys_own_upload_is_closed(client: httpx.Client) -> None:
    assert client.post("gradio_api/upload", files={"files": b"x"}).status_code == 403


def test_only_the_browser_that_sent_a_file_can_have_it_read(
    client: httpx.Client, site: Site
) -> None:
    token = put(client, "%EB%A9%94%EB%AA%A8.txt", SECRET.encode()).json()["token"]
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as stranger:
        stranger.get("/")
        trigger(stranger, "uploaded", {"tokens": [token], "failed": []})
    assert site.services.library.documents() == []
    trigger(client, "uploaded", {"tokens": [token], "failed": []})
    assert [d.name for d in site.services.library.documents()] == ["메모.txt"]
    trigger(client, "uploaded", {"tokens": [token], "failed": []})
    assert len(site.services.library.documents()) == 1, "a token counts once"
    site.services.library.delete(site.services.library.documents()[0].id)


@pytest.mark.parametrize(
    "claim",
    [
        {"tokens": ["/etc/passwd"]},
        {"tokens": [{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}]},
        {"tokens": "x"},
        {"tokens": None, "failed": 7},
        {"tokens": ["../incoming/x"], "failed": [{"reason": "no_such"}]},
        {},
    ],
)
def test_paths_in_place_of_tokens_read_nothing(
    client: httpx.Client, site: Site, claim: dict[str, Any]
) -> None:
    seen = trigger(client, "uploaded", claim)
    assert site.services.library.documents() == []
    assert "root:" not in json.dumps(seen)


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


def test_uploads_without_mark_or_header_and_large_ones_are_refused(
    client: httpx.Client, site: Site
) -> None:
    assert client.post(UPLOAD, content=b"x").status_code == 403
    assert client.get(UPLOAD).status_code == 403
    plain = httpx.post(
        site.url + UPLOAD, content=b"x", headers={"X-File-Name": "a"}, trust_env=False
    )
    assert plain.status_code == 403
    large = b"x" * (1_100_000)
    assert put(client, "a.txt", large).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 65_536

    sent = client.post(UPLOAD, content=endless(), headers={"X-File-Name": "a.txt"})
    assert sent.status_code == 413, "also without a length"
    assert waiting_files(site) == []


def test_waiting_files_of_one_browser_are_limited(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in", 10)
    for number in range(64):
        inbox.put(tmp_path / str(number), "a", "me")
    assert inbox.is_full("me") and not inbox.is_full("you")


def test_only_what_ended_programs_left_is_removed_at_the_start(tmp_path: Path) -> None:
    first = Inbox(tmp_path / "in", 10)
    (first.folder / "mine").write_text("x")
    (tmp_path / "in" / "of-an-older-version").write_text("x")
    pid, start, _ = first.folder.name.split("_")
    for name in ("999999999_1.000_dead", f"{pid}_{float(start) - 99:.3f}_reused", "nonsense"):
        (tmp_path / "in" / name).mkdir()
        (tmp_path / "in" / name / "left-over").write_text("x")
    second = Inbox(tmp_path / "in", 10)
    assert set((tmp_path / "in").iterdir()) == {first.folder, second.folder}
    second.close()
    assert (first.folder / "mine").exists() and not second.folder.exists()


def test_a_second_program_on_the_same_data_leaves_the_uploads_of_the_first(
    client: httpx.Client, site: Site
) -> None:
    token = put(client, "first.txt", b"Words of the first file.").json()["token"]
    second = launch(site.services, port=0)
    with httpx.Client(base_url=second.url, timeout=10, trust_env=False) as other:
        other.get("/")
        assert put(other, "other.txt", b"Words of another one.").status_code == 200
    second.close()
    later = put(client, "later.txt", b"Words of the later file.")
    assert later.status_code == 200, later.text
    trigger(client, "uploaded", {"tokens": [token, later.json()["token"]], "failed": []})
    found = site.services.library.documents()
    assert {document.name for document in found} == {"first.txt", "later.txt"}
    for document in found:
        site.services.library.delete(document.id)
    assert waiting_files(site) == []


def test_a_removed_folder_is_made_again(client: httpx.Client, site: Site) -> None:
    shutil.rmtree(site.settings.data_dir / "incoming")
    assert put(client, "a.txt", b"x").status_code == 200
    shutil.rmtree(site.settings.data_dir / "incoming")


@pytest.mark.parametrize(
    ("number", "reason", "words"),
    [(errno.ENOSPC, "disk_full", "is full"), (errno.EACCES, "not_saved", "could not save")],
)
def test_a_file_that_cannot_be_saved_is_answered_with_what_happened(
    client: httpx.Client,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *,
    number: int,
    reason: str,
    words: str,
) -> None:
    async def fails(*_: object) -> bool:
        raise OSError(number, "no")

    monkeypatch.setattr(Inbox, "_copy", fails)
    answer = put(client, "a.txt", b"x")
    assert (answer.status_code, answer.json()) == (500, {"error": reason})
    assert waiting_files(site) == [], "no part of it stays"
    captured = capfd.readouterr()
    assert "Traceback" not in captured.out + captured.err
    call = Call("", "", data={"failed": [{"name": "a.txt", "reason": reason}]})
    (_, sentence), *_ = rejected_of(call, "en", 1)
    assert words in sentence and "reload" not in sentence


@pytest.mark.parametrize(
    ("sent", "shown", "suffix"),
    [
        ("../../etc/passwd", "passwd", ""),
        ("C:\\x\\Report.PDF", "Report.PDF", ".pdf"),
        ("a\x00b\n\u202egpj.txt", "abgpj.txt", ".txt"),
        ("", "file", ""),
        ("보고서.docx", "보고서.docx", ".docx"),
        ("x" * 300 + ".md", "x" * 197 + ".md", ".md"),
        ("a.b/..", "..", ""),
        ("e.t;x y", "e.t;x y", ""),
    ],
)
def test_file_names_are_text_only(sent: str, shown: str, suffix: str) -> None:
    assert clean_name(sent) == shown
    assert suffix_of(shown) == suffix


def test_cookies_and_hosts_that_make_no_sense_are_none() -> None:
    assert cookie_of("%%%;;=") == "" and cookie_of(f"{COOKIE}=abc; x=1") == "abc"
    assert host_name("[::1]:80") == "::1" and host_name("[bad") == ""


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


def call(client: httpx.Client, name: str, *data: object) -> tuple[str, Any]:
    """Use a public endpoint as a script does; returns how it ended and the data."""
    begun = client.post(f"gradio_api/call/{name}", json={"data": list(data)})
    assert begun.status_code == 200, begun.text
    with client.stream("GET", f"gradio_api/call/{name}/{begun.json()['event_id']}") as stream:
        lines = [line for line in stream.iter_lines() if line]
    return lines[-2].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: "))


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
