"""A page that several people share: the file of users, the login, and what is whose."""

from __future__ import annotations

import io
import stat
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli import inside

from chatbot.engine.base import Finished, SamplingParams
from chatbot.engine.owned import OwnedEngine
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import InputError, SettingsError
from chatbot.store import Store
from chatbot.ui.login import LOGIN
from chatbot.users import add_user, hash_of, is_right, read_users, write_users
from tests.browser.person import Site
from tests.ui.client import call, put, trigger

PASSWORDS = {"anna": "correct horse", "bora": "battery staple"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("shared")
    for name, password in PASSWORDS.items():
        add_user(folder / "users.txt", name, password)
    running = Site(folder, auth=folder / "users.txt")
    yield running
    running.close()


@contextmanager
def log_in(site: Site, name: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as client:
        answer = client.post(LOGIN, data={"name": name, "password": PASSWORDS[name]})
        assert answer.status_code == 303, answer.text
        client.get("/")
        yield client


@pytest.fixture
def anna(site: Site) -> Iterator[httpx.Client]:
    with log_in(site, "anna") as client:
        yield client


@pytest.fixture
def bora(site: Site) -> Iterator[httpx.Client]:
    with log_in(site, "bora") as client:
        yield client


def updates(seen: list[dict[str, Any]]) -> str:
    return str(seen[-1])


def test_users_are_kept_with_hashes_that_only_the_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "team" / "users.txt"
    add_user(path, "anna", "correct horse")
    add_user(path, "bora", "battery staple")
    add_user(path, "anna", "another horse")
    users = read_users(path)
    assert list(users) == ["anna", "bora"]
    assert "horse" not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_right(users, "anna", "another horse") and is_right(users, "bora", "battery staple")
    for name, password in (("anna", "correct horse"), ("anna", ""), ("none", "another horse")):
        assert not is_right(users, name, password)


@pytest.mark.parametrize("name", ["", "../x", "Anna", "a/b", "안나", "x" * 33, "-a", "a:b", "a\n"])
def test_names_that_are_no_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        add_user(tmp_path / "users.txt", name, "correct horse")


def test_short_passwords_and_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="8 characters"):
        add_user(tmp_path / "users.txt", "anna", "short")
    with pytest.raises(SettingsError, match="user add"):
        read_users(tmp_path / "none.txt")
    bad = tmp_path / "bad.txt"
    bad.write_text("anna:plain text\n")
    with pytest.raises(SettingsError, match="line 1"):
        read_users(bad)


def test_nobody_reaches_the_chats_documents_and_files_of_another(
    site: Site, anna: httpx.Client, bora: httpx.Client
) -> None:
    token = put(anna, "secret.txt", b"The key lies under the stone.").json()["token"]
    trigger(bora, "uploaded", {"tokens": [token], "failed": []}, "bora")
    trigger(anna, "uploaded", {"tokens": [token], "failed": []})
    people = site.handle._people
    services = {}
    for name, client in (("anna", anna), ("bora", bora)):
        cookie = "; ".join(f"{key}={value}" for key, value in client.cookies.items())
        services[name] = people.of(cookie)._services
    [document] = services["anna"].library.documents()
    assert services["bora"].library.documents() == []
    [chat] = services["anna"].store.list_conversations()
    services["anna"].store.rename(chat.id, "Hidden title")
    for act in ("open", "rename", "delete", "pin", "forget", "remove", "use"):
        data = {"act": act, "id": chat.id if act != "remove" else document.id, "title": "x"}
        assert "Hidden title" not in updates(trigger(bora, "act", data, "bora"))
    assert [c.title for c in services["anna"].store.list_conversations()] == ["Hidden title"]
    assert services["anna"].library.documents() == [document]
    assert "Hidden title" in updates(trigger(anna, "act", {"act": "open", "id": chat.id}))


def test_chats_of_the_same_id_share_no_cache() -> None:
    engine = ScriptedEngine(lambda prompt, ids: "Reply.", keeps_cache=True)
    anna, bora = OwnedEngine(engine, "anna"), OwnedEngine(engine, "bora")
    ids = engine.tokenizer.encode("The key lies under the stone.")

    def reused(owned: OwnedEngine) -> int:
        *_, last = owned.generate(ids, SamplingParams(), conversation_id="same")
        assert isinstance(last, Finished)
        if last.usage.memory:
            assert set(last.usage.memory.kv_by_conversation) <= {"same"}
        return last.usage.cached_tokens

    assert reused(anna) == 0 and reused(bora) == 0 and reused(anna) > 0
    bora.forget("same")
    assert list(anna.memory().kv_by_conversation) == ["same"]
    assert bora.memory().kv_by_conversation == {}


def test_the_command_adds_lists_and_removes_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "team.txt"
    for name in ("anna", "bora"):
        monkeypatch.setattr("sys.stdin", io.StringIO("a long password\n"))
        assert inside("user", "add", name, "--file", path).code == 0
    assert inside("user", "remove", "anna", "--file", path).code == 0
    listed = inside("user", "list", "--file", path)
    assert (listed.code, listed.out) == (0, "bora\n")
    assert is_right(read_users(path), "bora", "a long password")
    gone = inside("user", "remove", "nobody", "--file", path)
    assert gone.code == 2 and "nobody" in gone.err


N_PEOPLE, N_TURNS = 8, 2


def test_eight_people_at_once_wait_for_no_action_and_keep_their_own(tmp_path: Path) -> None:
    """Each tells the model a word of their own, and looks for chats in between."""
    names = [f"person{n}" for n in range(N_PEOPLE)]
    hashed = hash_of("a long password")
    write_users(tmp_path / "users.txt", dict.fromkeys(names, hashed))

    def engine() -> ScriptedEngine:
        return ScriptedEngine(lambda prompt, ids: "So it is, my friend.", tokens_per_s=100)

    crowd = Site(tmp_path, engine=engine, auth=tmp_path / "users.txt")
    waits: list[float] = []

    def talk(name: str) -> str:
        with httpx.Client(base_url=crowd.url, timeout=60, trust_env=False) as client:
            client.post(LOGIN, data={"name": name, "password": "a long password"})
            client.get("/")
            chat = ""
            for turn in range(N_TURNS):
                how, [answer] = call(client, "ask", f"The word of {name} is {name}{turn}.", chat)
                assert how == "complete", answer
                chat = answer["conversation"]
                began = time.monotonic()
                seen = updates(trigger(client, "act", {"act": "search", "text": "word"}, name))
                waits.append(time.monotonic() - began)
                assert not [other for other in names if other != name and other in seen]
            return chat

    try:
        with ThreadPoolExecutor(N_PEOPLE) as pool:
            chats = dict(zip(names, pool.map(talk, names), strict=True))
        for name, chat in chats.items():
            with Store(tmp_path / "people" / name / "chats.db") as store:
                turns = store.load(chat).turns
            assert [turn.finish for turn in turns] == ["stop"] * N_TURNS
            assert all(f"{name}{n}" in turn.question for n, turn in enumerate(turns))
        assert statistics.median(waits) < 1.0, sorted(waits)
    finally:
        crowd.close()


def test_nobody_hears_what_is_sent_to_the_tab_of_another(
    anna: httpx.Client, bora: httpx.Client
) -> None:
    trigger(anna, "act", {"act": "search", "text": ""}, "annas-tab")
    address = "gradio_api/queue/data?session_hash=annas-tab"
    assert bora.get(address).status_code == 403
    assert trigger(bora, "act", {"act": "search", "text": ""}, "annas-tab") == []
