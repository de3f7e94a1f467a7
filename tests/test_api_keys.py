"""Keys of the API and what they may ask for, without any server."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cli import inside

from chatbot.api.errors import ApiError
from chatbot.api.keys import FILE, Key, KeyFile, Limits, add_key, read_keys, revoke_key
from chatbot.api.limits import KEEP_EVERY_S, Accounts
from chatbot.errors import InputError, SettingsError, StoreError

NONE = Limits(0, 0, 0)


class Kept(dict[str, Any]):
    def get_setting(self, key: str, default: object = None) -> object:
        return self.get(key, default)

    def set_setting(self, key: str, value: object) -> None:
        self[key] = value


class Clock:
    def __init__(self) -> None:
        self.s, self.day = 1000.0, "2030-01-01"

    def accounts(self, kept: Kept) -> Accounts:
        return Accounts(kept, now_s=lambda: self.s, today=lambda: self.day)


def key(**limits: int) -> Key:
    every = {"requests_per_minute": 0, "tokens_per_day": 0, "parallel": 0, **limits}
    return Key("bot", "", "x", Limits(**every))


def test_a_key_is_shown_once_and_kept_as_its_hash_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / FILE
    text = add_key(path, "bot", user="anna", limits=NONE, created="now")
    assert text not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    file = KeyFile(path)
    found = file.find(text)
    assert found is not None and (found.name, found.user) == ("bot", "anna")
    assert file.find(text + "x") is None and file.find("") is None
    with pytest.raises(InputError, match="already a key 'bot'"):
        add_key(path, "bot", user="", limits=NONE, created="")


def test_a_running_server_sees_new_and_revoked_keys_and_never_opens_by_a_lost_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / FILE
    file = KeyFile(path)
    assert not file.is_needed
    text = add_key(path, "bot", user="", limits=NONE, created="")
    assert file.is_needed and file.find(text)
    revoke_key(path, "bot")
    assert file.is_needed and file.find(text) is None and not file.has_keys
    path.unlink()
    assert file.is_needed
    with pytest.raises(InputError, match="no key 'bot'"):
        path.write_text("")
        revoke_key(path, "bot")


@pytest.mark.parametrize("line", ["nonsense", "{}", '{"name": "a"}', "[" * 9000, "\ud800"])
def test_a_damaged_file_is_told_by_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / FILE
    path.write_bytes(line.encode("utf-8", "surrogatepass"))
    with pytest.raises(SettingsError, match=r"api-keys\.txt"):
        read_keys(path)


@pytest.mark.parametrize("name", ["", "../x", "A", "x" * 33, "a b", "é"])
def test_names_that_could_be_paths_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="32 small letters"):
        add_key(tmp_path / FILE, name, user="", limits=NONE, created="")
    if name:
        with pytest.raises(InputError, match="32 small letters"):
            add_key(tmp_path / FILE, "fine", user=name, limits=NONE, created="")


def test_the_command_makes_lists_and_revokes(tmp_path: Path) -> None:
    data = ("--data-dir", str(tmp_path))
    made = inside("key", "add", "bot", "--user", "anna", "--parallel", "3", *data)
    assert made.code == 0 and made.out.startswith("sk-local-") and "only time" in made.err
    listed = inside("key", "list", *data)
    assert "bot  user=anna" in listed.out and "parallel=3" in listed.out
    assert made.out.strip() not in listed.out
    assert inside("key", "revoke", "bot", *data).code == 0
    listed = inside("key", "list", *data)
    assert listed.out == "" and "no key yet" in listed.err
    assert inside("key", "revoke", "bot", *data).code == 2
    assert inside("key", "add", *data).code == 2
    assert inside("key", "add", "x", "--parallel", "-1", *data).code == 2


def test_requests_of_a_minute_are_limited() -> None:
    clock = Clock()
    accounts = clock.accounts(Kept())
    mine = key(requests_per_minute=2)
    for _ in range(2):
        with accounts.request(mine, is_reply=False):
            clock.s += 10
    with pytest.raises(ApiError) as refused, accounts.request(mine, is_reply=False):
        pass
    assert refused.value.status == 429 and refused.value.headers["Retry-After"] == "40"
    clock.s += 40
    with accounts.request(mine, is_reply=False):
        pass


def test_replies_at_a_time_are_limited_and_other_requests_are_not() -> None:
    accounts = Clock().accounts(Kept())
    mine = key(parallel=1)
    with accounts.request(mine, is_reply=True):
        with accounts.request(mine, is_reply=False):
            pass
        with pytest.raises(ApiError, match="1 requests at a time"):
            accounts.request(mine, is_reply=True).__enter__()
    with accounts.request(mine, is_reply=True):
        pass


def test_tokens_of_a_day_are_limited_over_a_restart_and_anew_the_next_day() -> None:
    clock, kept = Clock(), Kept()
    mine = key(tokens_per_day=100)
    accounts = clock.accounts(kept)
    with accounts.request(mine, is_reply=True):
        accounts.spend(mine, 60)
    accounts.spend(mine, 50)
    with pytest.raises(ApiError) as refused, accounts.request(mine, is_reply=True):
        pass
    assert refused.value.code == "insufficient_quota"
    accounts.close()
    again = clock.accounts(kept)
    with pytest.raises(ApiError, match="used up"), again.request(mine, is_reply=True):
        pass
    clock.day = "2030-01-02"
    with again.request(mine, is_reply=True):
        again.spend(mine, 1)


def test_tokens_are_kept_now_and_then_and_added_to_those_of_other_processes() -> None:
    clock, kept = Clock(), Kept()
    mine = key(tokens_per_day=1000)
    one, other = clock.accounts(kept), clock.accounts(kept)
    for accounts in (one, other):
        with accounts.request(mine, is_reply=True):
            pass
    one.spend(mine, 10)
    assert not kept
    clock.s += KEEP_EVERY_S
    one.spend(mine, 10)
    other.spend(mine, 5)
    one.close(), other.close()
    assert json.loads(json.dumps(kept)) == {
        "api_tokens": {"day": "2030-01-01", "tokens": {"bot": 25}}
    }


def test_tokens_that_cannot_be_kept_now_are_kept_later_and_no_reply_fails_for_them() -> None:
    class Broken(Kept):
        broken = True

        def set_setting(self, key: str, value: object) -> None:
            if self.broken:
                raise StoreError("The disk is full.")
            super().set_setting(key, value)

    clock, kept = Clock(), Broken()
    accounts, mine = clock.accounts(kept), key(tokens_per_day=1000)
    clock.s += KEEP_EVERY_S
    accounts.spend(mine, 10)
    kept.broken = False
    accounts.close()
    assert kept["api_tokens"]["tokens"] == {"bot": 10}
