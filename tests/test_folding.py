"""Folding gives way to replies, can be cancelled, and survives failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from chatbot import folding as module
from chatbot.errors import EngineError
from chatbot.folding import Folding
from chatbot.reply_queue import ReplyQueue


class Fold:
    """A fold that runs until it is let go or stopped, and notes what happened."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.log: list[tuple[str, bool]] = []

    def __call__(self, conversation_id: str, stop: threading.Event) -> bool:
        self.started.set()
        while not self.release.is_set() and not stop.is_set():
            self.release.wait(0.005)
        self.log.append((conversation_id, stop.is_set()))
        return False


@pytest.fixture
def fold() -> Fold:
    return Fold()


def test_folds_what_is_scheduled(fold: Fold) -> None:
    fold.release.set()
    folding = Folding(ReplyQueue(), fold)
    folding.schedule("a")
    folding.schedule("b")
    assert folding.wait(5)
    assert fold.log == [("a", False), ("b", False)]
    folding.close()


def test_does_not_begin_while_a_reply_is_made(fold: Fold) -> None:
    fold.release.set()
    queue = ReplyQueue()
    folding = Folding(queue, fold)
    with queue.ticket():
        folding.schedule("a")
        assert not folding.wait(0.3)
        assert fold.log == []
    assert folding.wait(5)
    folding.close()


def test_gives_way_and_comes_back(fold: Fold) -> None:
    queue = ReplyQueue()
    folding = Folding(queue, fold)
    folding.schedule("a")
    assert fold.started.wait(5)
    with queue.ticket():
        folding.give_way()
        while not fold.log:
            fold.release.wait(0.005)
        assert fold.log == [("a", True)]
        fold.release.set()
    assert folding.wait(5)
    assert fold.log == [("a", True), ("a", False)]
    folding.close()


def test_cancel_returns_when_the_fold_has_stopped_for_good(fold: Fold) -> None:
    folding = Folding(ReplyQueue(), fold)
    folding.schedule("a")
    assert fold.started.wait(5)
    folding.cancel("a")
    assert fold.log == [("a", True)]
    assert folding.wait(0.5)
    assert len(fold.log) == 1
    folding.close()


def test_a_failing_fold_does_not_stop_the_others() -> None:
    seen: list[str] = []

    def failing(conversation_id: str, stop: threading.Event) -> bool:
        seen.append(conversation_id)
        raise EngineError("The model failed.")

    folding = Folding(ReplyQueue(), failing)
    folding.schedule("a")
    folding.schedule("b")
    assert folding.wait(5)
    assert seen == ["a", "b"]
    folding.close()


def test_close_ends_a_running_fold(fold: Fold) -> None:
    folding = Folding(ReplyQueue(), fold)
    folding.schedule("a")
    assert fold.started.wait(5)
    folding.close()
    folding.close()
    folding.schedule("b")
    assert fold.log == [("a", True)]


def test_who_waits_for_the_engine_does_not_ask_all_the_time(fold: Fold) -> None:
    """With hundreds of people, each with a worker, asking ten times a second takes a core."""
    asked: list[bool] = []

    class Queue(ReplyQueue):
        def is_empty(self, otherwise: Callable[[], None]) -> bool:
            asked.append(super().is_empty(otherwise))
            return asked[-1]

    fold.release.set()
    queue = Queue()
    folding = Folding(queue, fold)
    with queue.ticket():
        folding.schedule("a")
        assert not folding.wait(0.5)
        assert 1 <= len(asked) <= 2 and not any(asked)
    assert folding.wait(5)
    assert fold.log == [("a", False)]
    folding.close()


def test_a_worker_without_work_ends_and_another_one_takes_its_place(
    fold: Fold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_S", 0.01)
    fold.release.set()
    before = threading.active_count()
    folding = Folding(ReplyQueue(), fold)
    for _ in range(2):
        folding.schedule("a")
        assert folding.wait(5)
        until_s = time.monotonic() + 5
        while threading.active_count() > before and time.monotonic() < until_s:
            time.sleep(0.005)
        assert threading.active_count() == before
    assert fold.log == [("a", False)] * 2
    folding.close()
