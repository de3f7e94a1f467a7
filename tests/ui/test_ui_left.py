"""What a page shows that has left a chat in which a reply waits or is being written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chatbot.engine.base import EngineStatus
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.services import Services
from chatbot.ui import replies
from chatbot.ui.calls import Call
from chatbot.ui.handlers import Handlers
from tests.ui.samples import TAB

STALLING = ScriptedReply("alpha beta gamma delta epsilon", stall_after_tokens=3)
STAYS = "Kept from before"
"""The question of the chat that the tab turns to."""


class Engine(ScriptedEngine):
    """Stops in the middle of each answer until it is told to end; its model can be made to load."""

    is_loading = False

    @property
    def status(self) -> EngineStatus:
        return EngineStatus("loading", "Reading weights.") if self.is_loading else super().status


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(replies, "WAIT_S", 0.02)
    return Engine(lambda prompt, ids: STALLING)


@pytest.fixture
def other(services: Services) -> str:
    """A chat with a turn, besides the one in which the reply runs."""
    made = services.store.create_conversation().id
    services.store.begin_turn(made, STAYS)
    return made


@pytest.fixture(params=["waits", "writes"])
def updates(
    page: Handlers, engine: Engine, request: pytest.FixtureRequest
) -> Iterator[dict[str, Any]]:
    """What the page is told of a reply that has come as far as the parameter says."""
    engine.is_loading = request.param == "waits"
    updates = page.send(Call(TAB, "", ""), "Hello")
    shown = "model to load" if engine.is_loading else "alpha"
    next(update for update in updates if shown in str(update.get("chat")))
    return updates


def click(page: Handlers, act: str, conversation_id: str) -> None:
    page.act(Call(TAB, "", page.desk.tab(TAB).conversation_id, {"act": act, "id": conversation_id}))


def drawn(updates: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The next update that draws a chat."""
    return next(update for update in updates if "chat" in update)


def rest_of(updates: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """What all further updates come to, of which none may draw the chat that was left."""
    after: dict[str, Any] = {}
    for update in updates:
        assert "Hello" not in str(update.get("chat"))
        after |= update
    return after


pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("act", ["new", "delete"])
def test_the_new_chat_is_drawn_again_after_the_last_update_of_the_old_one(
    page: Handlers, updates: Iterator[dict[str, Any]], act: str
) -> None:
    """The browser may draw an update of the old chat after the answer to the button."""
    left = page.desk.tab(TAB).conversation_id
    click(page, act, left)
    page.desk.stop(left)
    after = rest_of(updates)
    assert "welcome" in str(after["chat"]) and after["cid"] == ""
    assert "'submit_btn': True" in str(after["msg"])


def test_each_chat_that_the_tab_turns_to_is_drawn_again_while_the_reply_goes_on(
    page: Handlers, updates: Iterator[dict[str, Any]], other: str
) -> None:
    running = page.desk.tab(TAB).conversation_id
    for _ in range(2):
        click(page, "open", other)
        left = drawn(updates)
        assert STAYS in str(left["chat"]) and left["cid"] == other
        assert "'submit_btn': True" in str(left["msg"])
        click(page, "open", running)
        assert "Hello" in str(drawn(updates)["chat"])
    click(page, "new", "")
    assert drawn(updates)["cid"] == ""
    click(page, "open", other)
    assert drawn(updates)["cid"] == other
    page.desk.stop(running)
    assert "chat" not in rest_of(updates)


def test_the_end_of_a_reply_heals_a_page_that_its_last_update_turned_back(
    page: Handlers, updates: Iterator[dict[str, Any]], other: str
) -> None:
    running = page.desk.tab(TAB).conversation_id
    click(page, "open", other)
    page.desk.stop(running)
    rest_of(updates)
    healed = page.after_fold(Call(TAB, "", running))
    assert STAYS in str(healed["chat"]) and healed["cid"] == other


def test_stop_ends_the_reply_that_the_page_shows_though_the_tab_had_left_it(
    page: Handlers, updates: Iterator[dict[str, Any]], other: str
) -> None:
    running = page.desk.tab(TAB).conversation_id
    click(page, "open", other)
    page.stop(Call(TAB, "", running))
    rest_of(updates)
    assert page.desk.running(running) is None
