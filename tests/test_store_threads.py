"""Many threads and programs use one store, and dead ones leave no running turn."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from killable import child
from store_samples import TRACE, answered, say, summary

from chatbot.store import Store
from chatbot.store_runner import runner_lives, runner_name


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    with Store(place) as opened:
        yield opened


def test_twenty_threads_of_five_turns_do_not_mix(store: Store) -> None:
    chats = [store.create_conversation(conversation_id=f"c{n}") for n in range(20)]
    failures: list[BaseException] = []

    def talk(chat_id: str) -> None:
        try:
            for n in range(5):
                turn = store.begin_turn(chat_id, f"code {chat_id} {n}")
                trace = dataclasses.replace(TRACE, question=chat_id)
                store.finish_turn(chat_id, answered(turn, f"code {chat_id} {n}", trace=trace))
                store.load(chat_id)
                store.save_summary(chat_id, summary(n + 1, chat_id))
                store.list_conversations()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=talk, args=(chat.id,)) for chat in chats]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for chat in chats:
        loaded = store.load(chat.id)
        expected = [f"code {chat.id} {n}" for n in range(5)]
        assert [t.question for t in loaded.turns] == [t.reply for t in loaded.turns] == expected
        assert loaded.summary == summary(5, chat.id)


def test_twenty_threads_in_one_chat_lose_no_turn(store: Store) -> None:
    chat = store.create_conversation()
    threads = [
        threading.Thread(target=say, args=(store, chat.id, *(f"{n}-{i}" for i in range(10))))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    questions = [t.question for t in store.load(chat.id).turns]
    assert sorted(questions) == sorted(f"{n}-{i}" for n in range(20) for i in range(10))


def open_and_ask(connection: Connection, place: Path | str) -> None:
    """A program at a database; it says what went wrong, or None."""
    connection.send("ready")
    connection.recv()
    try:
        with Store(place) as store:
            chat = store.create_conversation()
            for n in range(5):
                store.begin_turn(chat.id, str(n))
    except BaseException as error:
        connection.send(repr(error))
    else:
        connection.send(None)


def test_several_programs_may_open_a_new_database_at_once(place: Path | str) -> None:
    with ExitStack() as stack:
        running = [stack.enter_context(child(open_and_ask, place)) for _ in range(4)]
        for one in running:
            assert one.hear() == "ready"
        for one in running:
            one.say("go")
        assert [one.hear() for one in running] == [None] * 4
    with Store(place) as store:
        assert [info.turns for info in store.list_conversations()] == [5, 5, 5, 5]


def test_a_closed_store_leaves_no_running_turn(place: Path | str) -> None:
    with Store(place) as other:
        with Store(place) as store:
            chat = store.create_conversation()
            store.begin_turn(chat.id, "x")
            theirs = other.begin_turn(chat.id, "y")
        finishes = [turn.finish for turn in other.load(chat.id).turns]
        assert finishes == ["interrupted", "running"]
        with Store(place) as third:
            assert third.load(chat.id).turns[1].finish == "running"
        other.finish_turn(chat.id, answered(theirs, "done"))
        assert other.load(chat.id).turns[1].finish == "stop"


def test_runners() -> None:
    mine = runner_name()
    number, start, _ = mine.split(":")
    assert runner_lives(mine)
    assert not runner_lives(f"{number}:{float(start) - 60:.3f}:x")
    assert not runner_lives(f"999999999:{start}:x")
    assert not runner_lives("nonsense")
