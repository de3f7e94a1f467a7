"""Replies that could not be stored are stored soon after, though nobody asks again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hands_rig import Rig

from chatbot import unsaved
from chatbot.errors import StoreError, TurnGoneError
from chatbot.messages import Message, Turn
from chatbot.unsaved import Unsaved

BEFORE: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    BEFORE.update(threading.enumerate())
    monkeypatch.setattr(unsaved, "AGAIN_S", 0.02)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


class Keeper:
    """A store that is away until `back` is set, and from which some turns were removed."""

    def __init__(self, *removed: str) -> None:
        self.back = threading.Event()
        self.tried = threading.Semaphore(0)
        self.stored: list[str] = []
        self._removed = removed

    def finish_turn(self, conversation_id: str, turn: Turn) -> None:
        self.tried.release()
        if not self.back.is_set():
            raise StoreError("The database is away.")
        if turn.id in self._removed:
            raise TurnGoneError("The turn was removed.")
        self.stored.append(turn.id)


def turn(name: str) -> Turn:
    return Turn(name, (Message(f"m-{name}", "user", "Hello?"),))


def threads() -> list[str]:
    """Those that the tests of this file began."""
    new = set(threading.enumerate()) - BEFORE
    return [thread.name for thread in new if thread.name == "unsaved"]


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_reply_is_stored_once_the_database_is_back_without_another_question(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rig.ask("Zero?")
    with monkeypatch.context() as patch:
        away = Keeper()
        patch.setattr(rig.store, "finish_turn", away.finish_turn)
        told = rig.ask("One?")
        for _ in range(3):  # while it is being tried again and again
            assert away.tried.acquire(timeout=20)
        assert rig.now.turns[-1].finish == "running" and rig.now.turns[-1].reply == ""
    assert "not_stored" in [notice.code for notice in told.notices]
    until(lambda: rig.now.turns[-1].finish == "stop")
    stored = rig.now.turns[-1]
    assert stored.reply == told.reply and rig.store.load_trace(stored.id) is not None
    assert stored.notices == () and rig.now.turns[0].id == first.id
    until(lambda: not threads())


def test_a_reply_whose_turn_was_removed_meanwhile_is_no_longer_tried(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "finish_turn", Keeper().finish_turn)
        removed = rig.ask("One?")
        rig.store.drop_turns_from(rig.id, removed.id)
    until(lambda: not threads())
    rig.ask("Two?")
    assert [turn.question for turn in rig.now.turns] == ["Two?"]


def test_they_are_stored_in_their_order_and_what_was_removed_keeps_none_back() -> None:
    keeper = Keeper("b")
    waiting = Unsaved(keeper)
    for name in "abc":
        waiting.keep("chat", turn(name))
    waiting.keep("deleted", turn("d"))
    waiting.forget("deleted")
    assert len(threads()) == 1
    keeper.back.set()
    until(lambda: not threads())
    assert keeper.stored == ["a", "c"]
    keeper.back.clear()
    waiting.keep("chat", turn("e"))
    keeper.back.set()
    until(lambda: keeper.stored == ["a", "c", "e"])
    waiting.close()


def test_closing_tries_once_more_and_ends_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsaved, "AGAIN_S", 1000)
    keeper = Keeper()
    waiting = Unsaved(keeper)
    waiting.keep("chat", turn("a"))
    began = time.monotonic()
    keeper.back.set()
    waiting.close()
    waiting.close()
    assert keeper.stored == ["a"] and not threads() and time.monotonic() - began < 20


def test_who_asks_next_waits_for_what_is_just_being_stored() -> None:
    entered, go_on = threading.Event(), threading.Event()
    stored: list[str] = []

    class Slow:
        def finish_turn(self, conversation_id: str, turn: Turn) -> None:
            entered.set()
            assert go_on.wait(20)
            stored.append(turn.id)

    waiting = Unsaved(Slow())
    waiting.keep("chat", turn("a"))
    assert entered.wait(20)
    threading.Timer(0.1, go_on.set).start()
    waiting.save()
    assert stored == ["a"]
    waiting.close()
