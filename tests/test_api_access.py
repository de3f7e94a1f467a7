"""Who reaches what by the API: keys, persons, limits, other web sites; curl; the page beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chatbot.api.file_records import file_id
from chatbot.api.keys import FILE, Limits, add_key, revoke_key
from chatbot.api.waiting import WaitingFiles
from chatbot.errors import SettingsError
from chatbot.services import build_services
from chatbot.settings import Settings
from chatbot.ui.server import launch
from chatbot.users import add_user
from tests.api_rig import FREE, Api, until

HELLO = {"model": "default", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A program of two people who log in at the page, each with a key."""
    folder = tmp_path_factory.mktemp("access")
    add_user(folder / "users.txt", "anna", "long enough")
    add_key(folder / FILE, "first", user="", limits=FREE, created="")
    waiting = WaitingFiles(folder / "incoming-api")
    left = waiting.new_path(".txt")
    left.write_text("What an ended program did not read.", encoding="utf-8")
    waiting.keep(left, "left.txt", "anna")
    waiting.close()
    running = Api(folder, auth=folder / "users.txt", max_upload_mb=1)
    yield running
    running.close()


def key_of(api: Api, name: str, user: str, limits: Limits = FREE) -> dict[str, str]:
    return {"Authorization": f"Bearer {api.key(name, user, limits)}"}


@pytest.fixture(scope="module")
def anna(api: Api) -> dict[str, str]:
    return key_of(api, "anna-key", "anna")


@pytest.fixture(scope="module")
def bora(api: Api) -> dict[str, str]:
    return key_of(api, "bora-key", "bora")


def chat(api: Api, headers: dict[str, str], **more: Any) -> httpx.Response:
    return api.plain.post("chat/completions", json={**HELLO, **more}, headers=headers)


@pytest.mark.parametrize(
    "given",
    [{}, {"Authorization": "Bearer"}, {"Authorization": "Bearer sk-local-wrong"},
     {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer \xff"},
     {"Cookie": "chat_session=x"}],
)  # fmt: skip
def test_without_a_right_key_nothing_is_answered(api: Api, given: dict[str, str]) -> None:
    headers = {name: value.encode("latin-1") for name, value in given.items()}
    for method, path in (
        ("POST", "chat/completions"), ("GET", "models"), ("GET", "models/x"), ("GET", "files"),
        ("POST", "files"), ("GET", "files/x"), ("DELETE", "files/x"),
    ):  # fmt: skip
        answer = api.plain.request(method, path, headers=headers)
        assert answer.status_code == 401, (method, path)
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_key_reaches_its_persons_conversations_and_files_only(
    api: Api, anna: dict[str, str], bora: dict[str, str]
) -> None:
    named = {"metadata": {"conversation_id": "mine"}}
    secret = [{"role": "user", "content": "My secret is a lighthouse."}]
    assert chat(api, anna, messages=secret, **named).status_code == 200
    seen = chat(api, bora, **named).json()
    assert "secret" not in json.dumps(seen)
    assert seen["chatbot"]["conversation_id"] == "mine", "everyone has ids of their own"
    sent = api.plain.post("files", files={"file": ("a.txt", b"Anna's notes.")}, headers=anna)
    file = sent.json()["id"]
    until(
        lambda: api.plain.get(f"files/{file}", headers=anna).json()["status"] == "processed",
        "the file is read",
    )
    assert api.plain.get("files", headers=bora).json()["data"] == []
    assert api.plain.get(f"files/{file}", headers=bora).status_code == 404
    assert api.plain.delete(f"files/{file}", headers=bora).status_code == 404
    assert chat(api, bora, metadata={"file_ids": file}).status_code == 404
    assert chat(api, anna, metadata={"file_ids": "all"}).status_code == 200
    infos = api.handle._persons.of("anna").store.list_conversations()
    assert [info.id for info in infos] == ["mine"], "as the page lists them"
    assert api.services.store.list_conversations() == []


def test_a_key_that_is_revoked_is_refused_at_once(api: Api) -> None:
    headers = key_of(api, "short-lived", "anna")
    assert api.plain.get("models", headers=headers).status_code == 200
    revoke_key(api.settings.data_dir / FILE, "short-lived")
    assert api.plain.get("models", headers=headers).status_code == 401


def test_limits_of_a_key_are_held(api: Api) -> None:
    slow = key_of(api, "slow", "anna", Limits(2, 0, 0))
    codes = [api.plain.get("models", headers=slow).status_code for _ in range(3)]
    assert codes == [200, 200, 429]
    poor = key_of(api, "poor", "anna", Limits(0, 10, 0))
    assert chat(api, poor).status_code == 200
    refused = chat(api, poor)
    assert refused.status_code == 429 and refused.json()["error"]["code"] == "insufficient_quota"
    assert int(refused.headers["retry-after"]) > 0
    single = key_of(api, "single", "anna", Limits(0, 0, 1))
    asked = {**HELLO, "stream": True, "messages": [{"role": "user", "content": "wish:stall"}]}
    with api.plain.stream("POST", "chat/completions", json=asked, headers=single) as answer:
        lines = answer.iter_lines()
        next(lines)  # kept, since its end would end the reply
        assert chat(api, single).json()["error"]["code"] == "rate_limit_exceeded"
    until(lambda: chat(api, single).status_code == 200, "the place is free again")


def test_a_file_that_an_ended_program_did_not_read_is_read(
    api: Api, anna: dict[str, str], bora: dict[str, str]
) -> None:
    path = f"files/{file_id('left.txt')}"
    until(
        lambda: api.plain.get(path, headers=anna).json().get("status") == "processed",
        "the file is read",
    )
    assert api.plain.get(path, headers=bora).status_code == 404
    assert api.plain.delete(path, headers=anna).json()["deleted"]


def test_a_file_that_is_too_large_is_refused_while_it_comes(api: Api, anna: dict[str, str]) -> None:
    sent = {"file": ("a.txt", b"x" * (1 << 20) + b"y")}
    answer = api.plain.post("files", files=sent, headers=anna)
    assert answer.status_code == 413 and answer.json()["error"]["code"] == "too_large"

    def endless() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(40):
            yield b"x" * 65_536

    kind = {"Content-Type": "multipart/form-data; boundary=b", **anna}
    assert api.plain.post("files", content=endless(), headers=kind).status_code == 413
    waiting = api.settings.data_dir / "incoming-api"
    assert not [path for path in waiting.rglob("*") if path.is_file()]


def test_the_page_is_as_it_was_and_its_login_opens_no_api(api: Api) -> None:
    assert "content-security-policy" not in api.plain.get("models").headers
    with httpx.Client(base_url=api.url, trust_env=False, verify=False) as browser:
        assert browser.get("/", headers={"Accept": "text/html"}).status_code == 303
        given = {"name": "anna", "password": "long enough"}
        assert browser.post("local/login", data=given).status_code == 303
        page = browser.get("/")
        assert page.status_code == 200 and "content-security-policy" in page.headers
        assert browser.get("v1/models").status_code == 401
        assert browser.get("v2/models").status_code == 404


def test_curl_speaks_with_it(api: Api, anna: dict[str, str]) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("needs curl")

    def run(*arguments: str) -> str:
        head = f"Authorization: {anna['Authorization']}"
        command = [curl, "-sS", "--noproxy", "*", "-H", head, *arguments]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)
        return done.stdout.decode("utf-8")

    url, kind = f"{api.base_url}/chat/completions", "Content-Type: application/json"
    reply = json.loads(run(url, "-H", kind, "-d", json.dumps(HELLO)))
    assert reply["choices"][0]["message"]["content"].startswith("안녕하세요")
    lines = run(url, "-N", "-H", kind, "-d", json.dumps({**HELLO, "stream": True})).splitlines()
    assert lines[-2] == "data: [DONE]" and lines[0].startswith("data: {")
    folder = api.settings.data_dir
    (folder / "notes.md").write_text("# Notes\n\nThe lighthouse is white.\n", encoding="utf-8")
    sent = json.loads(run(f"{api.base_url}/files", "-F", f"file=@{folder / 'notes.md'}"))
    assert sent["filename"] == "notes.md" and sent["status"] in ("uploaded", "processed")
    assert json.loads(run(f"{api.base_url}/models"))["data"][0]["id"] == "scripted"


def test_without_keys_other_hosts_and_web_sites_are_kept_out(tmp_path: Path) -> None:
    api = Api(tmp_path)
    assert api.plain.get("models").status_code == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        for answer in (
            api.plain.get("models", headers=headers),
            api.plain.post("chat/completions", json=HELLO, headers=headers),
        ):
            assert answer.status_code == 403 and answer.json()["error"]["code"] == "forbidden"
    key = api.key("bot")
    assert api.plain.get("models").status_code == 401, "from the first key on it is needed"
    right = {"Authorization": f"Bearer {key}", "Host": "chat.example"}
    assert api.plain.get("models", headers=right).status_code == 200
    (tmp_path / FILE).write_text("damaged\n")
    broken = api.plain.get("models", headers=right)
    assert broken.status_code == 503 and str(tmp_path) not in broken.text
    api.close()


@pytest.mark.parametrize(
    "more", [{"behind_proxy": True}, {"auth": "users.txt"}, {"host": "0.0.0.0"}]
)
def test_where_others_could_come_it_does_not_start_without_keys(
    tmp_path: Path, more: dict[str, Any], scripted_engine: Any
) -> None:
    add_user(tmp_path / "users.txt", "anna", "long enough")
    given = {**more, "auth": tmp_path / "users.txt"} if "behind_proxy" not in more else more
    settings = Settings.model_validate(
        {"data_dir": tmp_path, "port": 0, "embedding_model": "none", "api": True, **given}
    )
    services = build_services(settings, engine=scripted_engine)
    with pytest.raises(SettingsError, match="make a key with"):
        launch(services)
    services.close()
