"""kill -9 at any moment: nothing that was finished is lost, and the database stays whole."""

from __future__ import annotations

import dataclasses
import itertools
import random
import signal
import sqlite3
import time
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from killable import child

from chatbot.messages import Message, PromptTrace, RollingSummary, Segment
from chatbot.store import Store

ROUNDS = 6

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="needs kill -9 (not Windows)"
)


def write(connection: Connection, path: Path) -> None:
    """Says what is finished, only once the store has said so."""
    store = Store(path)
    chat = store.create_conversation()
    connection.send(("chat", chat.id))
    trace = PromptTrace("q", 1, 9, 1, (Segment("passage", 1, "text " * 3000),))
    for n in itertools.count(1):
        turn = store.begin_turn(chat.id, f"question {n}")
        connection.send(("asked", turn.id))
        reply = (Message(f"a{n}", "assistant", f"reply to {turn.id} " * 50),)
        done = dataclasses.replace(turn, assistant=reply, finish="stop", trace=trace)
        store.finish_turn(chat.id, done)
        connection.send(("finished", turn.id))
        if n % 3 == 0:
            store.save_summary(chat.id, RollingSummary(f"summary {n}", n, 5))
            connection.send(("summary", n))


def ask(connection: Connection, path: Path) -> None:
    store = Store(path)
    chat = store.create_conversation()
    connection.send((chat.id, store.begin_turn(chat.id, "아직 답이 없다").id))
    time.sleep(60)


def test_nothing_finished_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    reports = []
    for _ in range(ROUNDS):
        reports.append(_killed_writer(path, chance.uniform(0.0, 0.25)))
        # What the next program finds, before and after it opens the store.
        _check(path, reports)
    n_finished = sum(len(report["finished"]) for report in reports)
    print(f"{n_finished} finished turns survived {ROUNDS} kills")
    assert n_finished > ROUNDS


def test_a_question_that_is_being_answered_survives_as_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with child(ask, path) as writer:
        chat_id, turn_id = writer.hear()
        with Store(path) as store:
            assert store.load(chat_id).turns[0].finish == "running"
        writer.kill()
    with Store(path) as store:
        turn = store.load(chat_id).turns[0]
        assert (turn.id, turn.finish, turn.question) == (turn_id, "interrupted", "아직 답이 없다")
        again = store.begin_turn(chat_id, "다시", replacing=turn_id)
        assert [t.id for t in store.load(chat_id).turns] == [again.id]


def _killed_writer(path: Path, after_s: float) -> dict[str, list[Any]]:
    """What a writer reported before it was killed, by kind."""
    report: dict[str, list[Any]] = {"chat": [], "asked": [], "finished": [], "summary": []}
    with child(write, path) as writer:
        first = writer.hear()
        time.sleep(after_s)
        for kind, value in [first, *writer.kill()]:
            report[kind].append(value)
    return report


def _check(path: Path, reports: list[dict[str, list[Any]]]) -> None:
    with Store(path) as store:
        for report in reports:
            chat = store.load(report["chat"][0])
            turns = {turn.id: turn for turn in chat.turns}
            for turn_id in report["finished"]:
                assert turns[turn_id].finish == "stop"
                assert turns[turn_id].reply == f"reply to {turn_id} " * 50
                assert store.load_trace(turn_id) is not None
            assert set(report["asked"]) <= turns.keys()
            assert {turn.finish for turn in chat.turns} <= {"stop", "interrupted"}
            if report["summary"]:
                assert isinstance(chat.summary, RollingSummary)
                assert chat.summary.covers >= report["summary"][-1]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
