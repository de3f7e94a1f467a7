"""Who gets in by the login, where to, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chatbot.ui.login import LOGIN, LOGOUT, TRIES
from chatbot.users import add_user, read_users, write_users
from tests.browser.person import Site
from tests.test_users import PASSWORDS, log_in
from tests.ui.client import put


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("logins")
    for name, password in PASSWORDS.items():
        add_user(folder / "users.txt", name, password)
    running = Site(folder, auth=folder / "users.txt")
    yield running
    running.close()


@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/info", "/gradio_api/queue/data"])
def test_nobody_gets_in_without_a_login(site: Site, path: str) -> None:
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as stranger:
        assert stranger.get(path).status_code == 401
        answer = stranger.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 303 and answer.headers["location"] == LOGIN
        assert put(stranger, "a.txt", b"x").status_code == 401
        joined = stranger.post("gradio_api/queue/join", json={"data": [""], "fn_index": 0})
        assert joined.status_code == 401
        stranger.cookies.set("chat_session", "made-up")
        assert stranger.get(path).status_code == 401
        assert "<form" in stranger.get(LOGIN).text


def test_wrong_passwords_are_refused_and_then_paused(site: Site) -> None:
    add_user(site.settings.data_dir / "users.txt", "carl", "a long password")
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as client:
        for _ in range(TRIES):
            answer = client.post(LOGIN, data={"name": "carl", "password": "wrong"})
            assert answer.status_code == 401
        late = client.post(LOGIN, data={"name": "carl", "password": "a long password"})
        assert late.status_code == 429 and "chat_session" not in client.cookies


def test_logging_out_ends_the_session(site: Site) -> None:
    with log_in(site, "anna") as client:
        cookies = dict(client.cookies)
        assert client.get("config").status_code == 200
        client.post(LOGOUT)
        client.cookies.update(cookies)
        assert client.get("config").status_code == 401


def test_a_new_password_or_a_removed_user_ends_what_was_begun(site: Site) -> None:
    path = site.settings.data_dir / "users.txt"
    add_user(path, "dora", "a long password")
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as client:
        for password in ("a long password", "another password"):
            add_user(path, "dora", password)
            late = client.get("config")
            assert late.status_code == 401 and late.headers["x-chat-login"] == "needed"
            client.post(LOGIN, data={"name": "dora", "password": password})
            assert client.get("config").status_code == 200
        users = read_users(path)
        write_users(path, {name: users[name] for name in users if name != "dora"})
        assert client.get("config").status_code == 401
        wrong = client.post(LOGIN, data={"name": "dora", "password": "another password"})
        assert wrong.status_code == 401
        # A file that cannot be read lets nobody in, and whoever was in is in again afterwards.
        with log_in(site, "anna") as anna:
            path.rename(path.with_suffix(".away"))
            assert anna.get("config").status_code == 401
            path.with_suffix(".away").rename(path)
            assert anna.get("config").status_code == 200


def test_who_logs_in_comes_to_the_chat_of_the_address(site: Site) -> None:
    page = {"Accept": "text/html"}
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as client:
        sent = client.get("/?c=chat-1&x=2", headers=page)
        assert sent.headers["location"] == f"{LOGIN}?c=chat-1"
        assert 'name="c" value="chat-1"' in client.get(sent.headers["location"]).text
        given = {"name": "anna", "password": "wrong", "c": "chat-1"}
        assert 'name="c" value="chat-1"' in client.post(LOGIN, data=given).text
        given["password"] = PASSWORDS["anna"]
        assert client.post(LOGIN, data=given).headers["location"] == "/?c=chat-1"
        given["c"] = "//evil"
        assert client.post(LOGIN, data=given).headers["location"] == "/"
        bad = client.get("/?c=%22%3E%3Cb%3E", headers={**page, "Cookie": ""})
        assert bad.headers["location"] == LOGIN
