"""Many people at one program: who is away takes little, and finds everything when coming back."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cli import inside

from chatbot.engine.scripted import ScriptedEngine
from chatbot.persons import LOOK_EVERY_S, REST_AFTER_S, Persons
from chatbot.services import Services, build_services
from chatbot.settings import Settings
from tests.conftest import ROOT


class Clock:
    """A time that passes when it is told to."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def persons(tmp_path: Path, clock: Clock) -> Iterator[Persons]:
    settings = Settings(data_dir=tmp_path, embedding_model="none")
    engine = ScriptedEngine(lambda prompt, ids: "Noted.")
    with (
        closing(build_services(settings, engine=engine)) as services,
        closing(Persons(services, now_s=clock)) as persons,
    ):
        yield persons


def _talk(services: Services, *questions: str) -> None:
    for question in questions:
        for _ in services.chat.reply("talk", question):
            pass
    assert services.chat.wait_for_folds(30)


def _kept(services: Services) -> dict[str, int]:
    """What is kept in memory of what lies on the disk."""
    builder = services.chat._builder
    pool = services.store._database._engine.pool
    return {
        "connections": pool.checkedin(),  # type: ignore[attr-defined]
        "read": len(services.store._known._known),
        "library": len(services.library.store._database._idle),  # type: ignore[attr-defined]
        "encoded": len(builder.encoder._turns) if builder else 0,
    }


def _wait_for_rest() -> None:
    until_s = time.monotonic() + 30
    while any(t.name == "rest" for t in threading.enumerate()) and time.monotonic() < until_s:
        time.sleep(0.01)


def test_who_is_away_keeps_nothing_open_and_finds_everything(
    persons: Persons, clock: Clock
) -> None:
    away, here = persons.of("ann"), persons.of("ben")
    for services in (away, here):
        services.store.create_conversation("", None, "talk")
        _talk(services, "My sister Mina lives in Busan.", "Where does Mina live?")
        assert not _kept(services)["library"], "opened for somebody without documents"
        assert services.library.documents() == []
    assert all(_kept(away).values()), _kept(away)
    clock.now_s = REST_AFTER_S - 1
    persons.of("ben")
    _wait_for_rest()
    assert all(_kept(away).values())
    clock.now_s += LOOK_EVERY_S
    persons.of("ben")
    _wait_for_rest()
    assert not any(_kept(away).values()), _kept(away)
    assert all(_kept(here).values())
    assert persons.of("ann") is away
    _talk(away, "And where does Mina live now?")
    turns = away.store.load("talk").turns
    assert [turn.finish for turn in turns] == ["stop"] * 3


def test_resting_in_the_middle_of_a_reply_harms_nothing(persons: Persons) -> None:
    services = persons.of("ann")
    services.store.create_conversation("", None, "talk")
    for question in ("My sister Mina lives in Busan.", "Where does Mina live?"):
        for _ in services.chat.reply("talk", question):
            services.rest()
    assert [turn.finish for turn in services.store.load("talk").turns] == ["stop"] * 2


def test_chats_from_before_the_login_come_over_as_the_readme_says(
    persons: Persons, tmp_path: Path
) -> None:
    before = persons.shared
    before.store.create_conversation("", None, "talk")
    _talk(before, "My sister Mina lives in Busan.")
    anna = persons.of("anna")
    assert anna.store.list_conversations() == []
    words = (ROOT / "README.md").read_text("utf-8").split()
    place = words[words.index("earlier/*.json") + 2].rsplit("local-llama-chat/")[1]
    earlier = tmp_path / "earlier"
    assert inside("export", "--all", earlier, "--data-dir", tmp_path).code == 0
    files = sorted(earlier.glob("*.json"))
    assert inside("import", *files, "--data-dir", tmp_path / place).code == 0
    [chat] = anna.store.list_conversations()
    assert anna.store.load(chat.id).turns[0].question == "My sister Mina lives in Busan."


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_a_server_may_have_as_many_files_open_as_the_system_grants() -> None:
    code = (
        "import resource as r; from chatbot.open_files import allow_many\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (100, 900)); allow_many()\n"
        "assert r.getrlimit(r.RLIMIT_NOFILE) == (900, 900)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
