"""kill -9 at any moment: nothing that was finished is lost, and the database stays whole."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from chatbot.messages import RollingSummary
from chatbot.store import Store

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 10

# Says on its output what is finished, only once the store has said so.
WRITER = """
import dataclasses, itertools, sys
from pathlib import Path
from chatbot.messages import Message, PromptTrace, RollingSummary, Segment
from chatbot.store import Store

store = Store(Path(sys.argv[1]))
chat = store.create_conversation()
print("chat", chat.id, flush=True)
trace = PromptTrace("q", 1, 9, 1, (Segment("passage", 1, "text " * 3000),))
for n in itertools.count(1):
    turn = store.begin_turn(chat.id, f"question {n}")
    print("asked", turn.id, flush=True)
    reply = (Message(f"a{n}", "assistant", f"reply to {turn.id} " * 50),)
    done = dataclasses.replace(turn, assistant=reply, finish="stop", trace=trace)
    store.finish_turn(chat.id, done)
    print("finished", turn.id, flush=True)
    if n % 3 == 0:
        store.save_summary(chat.id, RollingSummary(f"summary {n}", n, 5))
        print("summary", n, flush=True)
"""


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
    code = (
        "import sys, time; from pathlib import Path; from chatbot.store import Store\n"
        "store = Store(Path(sys.argv[1])); chat = store.create_conversation()\n"
        "print(chat.id, store.begin_turn(chat.id, '아직 답이 없다').id, flush=True); time.sleep(60)"
    )
    with _start(code, path) as writer:
        chat_id, turn_id = str(writer.stdout and writer.stdout.readline()).split()
        with Store(path) as store:
            assert store.load(chat_id).turns[0].finish == "running"
        writer.kill()
    with Store(path) as store:
        turn = store.load(chat_id).turns[0]
        assert (turn.id, turn.finish, turn.question) == (turn_id, "interrupted", "아직 답이 없다")
        again = store.begin_turn(chat_id, "다시", replacing=turn_id)
        assert [t.id for t in store.load(chat_id).turns] == [again.id]


def _start(code: str, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def _killed_writer(path: Path, after_s: float) -> dict[str, list[str]]:
    """What a writer reported before it was killed, by kind."""
    report: dict[str, list[str]] = {"chat": [], "asked": [], "finished": [], "summary": []}
    with _start(WRITER, path) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(after_s)
        writer.kill()
        lines = [first, *writer.stdout.readlines()]
    for line in lines:
        # The kill may have come in the middle of the last line.
        if line.endswith("\n"):
            kind, value = line.split()
            report[kind].append(value)
    return report


def _check(path: Path, reports: list[dict[str, list[str]]]) -> None:
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
                assert chat.summary.covers >= int(report["summary"][-1])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
