"""What a page shows that has left a chat in which a reply was being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.ui.calls import Call
from chatbot.ui.handlers import Handlers
from chatbot.ui.inbox import Inbox

TAB = "tab1"
STALLING = ScriptedReply("alpha beta gamma delta epsilon", stall_after_tokens=3)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    settings = Settings(data_dir=tmp_path, embedding_model="none")
    engine = ScriptedEngine(lambda prompt, ids: STALLING)
    with closing(build_services(settings, engine=engine)) as services:
        yield services


@pytest.fixture
def page(services: Services, tmp_path: Path) -> Iterator[Handlers]:
    made = Handlers(services, Inbox(tmp_path / "incoming", 1000))
    made.load(Call(TAB, "", ""), "en", "")
    yield made
    made.close()


@pytest.mark.parametrize("act", ["new", "delete"])
def test_the_new_chat_is_drawn_again_after_the_last_update_of_the_old_one(
    page: Handlers, act: str
) -> None:
    """The browser may draw an update of the old chat after the answer to the button."""
    updates = page.send(Call(TAB, "", ""), "Hello")
    next(update for update in updates if "alpha" in str(update.get("chat")))
    left = page.desk.tab(TAB).conversation_id
    page.act(Call(TAB, "", left, {"act": act, "id": left}))
    page.desk.stop(left)
    after: dict[str, object] = {}
    for update in updates:
        assert "alpha" not in str(update.get("chat"))
        after |= update
    assert "welcome" in str(after["chat"]) and after["cid"] == ""
    assert "'submit_btn': True" in str(after["msg"])
