"""Several processes, and several people, at one database; the same rules wherever it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_samples import TRACE, answered, say, summary

from benchmarks.postgres_server import PostgresServer
from benchmarks.shared_database import Plan, run
from chatbot import store_edits, store_leases, store_postgres, store_schema
from chatbot.busy import BEING_ANSWERED
from chatbot.errors import InputError, StoreError
from chatbot.messages import Conversation, Message, Notice, Turn
from chatbot.store import Store
from chatbot.store_place import describe

LEASE_S = 1.5
LONG_LEASE_S = 60
WAIT_S = 60.0


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    with Store(place) as opened:
        yield opened


@pytest.fixture
def other(place: Path | str, store: Store) -> Iterator[Store]:
    """The store of another process; what it has in memory it has for itself."""
    with Store(place) as opened:
        yield opened


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


# What another process wrote


def test_nothing_stale_is_shown_when_another_process_wrote(store: Store, other: Store) -> None:
    chat = store.create_conversation("old title")
    turns = say(store, chat.id, "one", "two")
    other.load(chat.id)
    store.rename(chat.id, "new title")
    store.finish_turn(chat.id, answered(turns[0], "told otherwise"))
    assert other.load(chat.id).turns[0].reply == "told otherwise"
    assert [info.title for info in other.list_conversations()] == ["new title"]
    other.drop_turns_from(chat.id, turns[1].id)
    assert [turn.question for turn in store.load(chat.id).turns] == ["one"]
    assert [info.turns for info in store.list_conversations()] == [1]


def test_what_another_process_forgot_is_not_shown_from_memory(store: Store, other: Store) -> None:
    chat = store.create_conversation()
    first, second = say(store, chat.id, "secret", "later")
    noted = answered(second, "re: later", trace=TRACE)
    store.finish_turn(chat.id, _with_notice(noted, "speaks of the secret"))
    assert other.load(chat.id).turns[1].notices
    store.forget_turn(
        chat.id,
        first.id,
        change=lambda summary: summary,
        scrub=lambda trace, _: trace,
        scrub_notices=lambda notices: (),
        rebuilt=None,
    )
    assert [turn.notices for turn in other.load(chat.id).turns] == [()]


def _with_notice(turn: Turn, text: str) -> Turn:
    import dataclasses

    return dataclasses.replace(turn, notices=(Notice("note", text),))


def test_a_summary_that_came_second_is_not_kept(store: Store, other: Store) -> None:
    chat = store.create_conversation()
    turns = say(store, chat.id, "a", "b", "c")
    assert other.save_summary(chat.id, summary(2, "first"), last_turn_id=turns[1].id)
    assert not store.save_summary(chat.id, summary(2, "second"), last_turn_id=turns[1].id)
    assert [s.text for s in store.summary_versions(chat.id)] == ["first"]


# One at a time


def test_only_one_process_answers_in_a_conversation(store: Store, other: Store) -> None:
    assert store_edits.BEING_ANSWERED == BEING_ANSWERED
    chat, free = store.create_conversation(), store.create_conversation()
    running = store.begin_turn(chat.id, "x", alone=True)
    with pytest.raises(InputError, match=BEING_ANSWERED):
        other.begin_turn(chat.id, "y", alone=True)
    with pytest.raises(InputError, match=BEING_ANSWERED):
        other.begin_turn(chat.id, "y", replacing=running.id, alone=True)
    other.begin_turn(free.id, "y", alone=True)
    store.finish_turn(chat.id, answered(running, "done"))
    other.begin_turn(chat.id, "y", alone=True)
    assert [turn.question for turn in store.load(chat.id).turns] == ["x", "y"]


def test_work_is_claimed_once_and_let_go(store: Store, other: Store) -> None:
    with store.claimed("fold", "chat") as mine:
        assert mine
        with other.claimed("fold", "chat") as theirs, other.claimed("fold", "another") as free:
            assert (theirs, free) == (False, True)
        with store.claimed("fold", "chat") as again, store.claimed("upload", "chat") as upload:
            assert (again, upload) == (False, True)
    with other.claimed("fold", "chat") as theirs:
        assert theirs


def test_an_id_that_two_processes_want_is_given_once(store: Store, other: Store) -> None:
    store.create_conversation(conversation_id="mine")
    with pytest.raises(InputError, match="'mine'"):
        other.create_conversation(conversation_id="mine")


# Processes that die


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes with long leases put them off, and look after dead ones, twice in a second."""
    monkeypatch.setattr(store_leases, "BEATS", LONG_LEASE_S * 2)


@pytest.mark.usefixtures("quick_beats")
def test_the_work_of_a_dead_process_is_free_after_its_lease(postgres: PostgresServer) -> None:
    url = postgres.fresh()
    with Store(url, lease_s=LONG_LEASE_S) as store:
        dead = Store(url, lease_s=LEASE_S)
        chat = store.create_conversation()
        turn = dead.begin_turn(chat.id, "x", alone=True)
        with dead._database.write() as connection:
            assert dead._take(connection, "fold", f"local/{chat.id}")
        _freeze(dead)
        until(lambda: store.last_turns(chat.id, 1)[0].finish == "interrupted")
        with store.claimed("fold", chat.id) as mine:
            assert mine
        store.begin_turn(chat.id, "y", alone=True)
        # It was only cut off for a while, and finishes after all.
        dead.finish_turn(chat.id, answered(turn, "late"))
        assert [turn.reply for turn in store.load(chat.id).turns] == ["late", ""]
        assert postgres.run(f"SELECT count(*) FROM {_schema(url)}.runners") == "1"
        dead._database.close()


def test_a_dead_process_shows_to_the_first_who_looks(postgres: PostgresServer) -> None:
    url = postgres.fresh()
    with Store(url, lease_s=LONG_LEASE_S) as store:
        dead = Store(url, lease_s=LEASE_S)
        chat = store.create_conversation()
        dead.begin_turn(chat.id, "x")
        _freeze(dead)
        time.sleep(LEASE_S)
        assert store.load(chat.id).turns[0].finish == "interrupted"
        dead._database.close()


@pytest.mark.usefixtures("quick_beats")
def test_a_living_process_puts_off_its_end(postgres: PostgresServer) -> None:
    url = postgres.fresh()
    ends = f"SELECT min(lives_until) FROM {_schema(url)}.runners"
    with Store(url, lease_s=LONG_LEASE_S) as store, Store(url, lease_s=LONG_LEASE_S) as other:
        chat = store.create_conversation()
        store.begin_turn(chat.id, "x")
        first = int(postgres.run(ends))
        until(lambda: int(postgres.run(ends)) > first + 1000)
        assert other.load(chat.id).turns[0].finish == "running"
        with Store(url, lease_s=LONG_LEASE_S) as third:
            assert third.load(chat.id).turns[0].finish == "running"
    assert postgres.run(f"SELECT count(*) FROM {_schema(url)}.runners") == "0"


def _freeze(store: Store) -> None:
    """Let a store beat no longer, as if its process had been killed."""
    life = store._life
    life._ended.set()  # type: ignore[attr-defined]
    life._thread.join()  # type: ignore[attr-defined]


def _schema(url: str) -> str:
    return url.rpartition("%3D")[2]


@pytest.mark.slow
def test_two_processes_one_killed_lose_and_double_nothing(postgres: PostgresServer) -> None:
    plan = Plan(conversations=4, turns=4, in_common=1, lease_s=3.0)
    found = run(plan, postgres.fresh())
    assert found["faults"] == []
    assert found["holds"], found
    assert found["turns"] == 4 * 6


# People


def test_nobody_reaches_the_conversations_of_others(store: Store) -> None:
    kim, lee = store.for_owner("person:kim"), store.for_owner("person:lee")
    chat = kim.create_conversation("kim's")
    turns = say(kim, chat.id, "number 7342", "b")
    kim.finish_turn(chat.id, answered(turns[0], "re", trace=TRACE))
    kim.save_summary(chat.id, summary(1, "S"))
    kim.set_documents(chat.id, ["doc"])
    branch = kim.begin_turn(chat.id, "c", replacing=turns[1].id)
    kim.finish_turn(chat.id, answered(branch, "re: c"))
    for stranger in (lee, store):
        assert stranger.list_conversations() == stranger.search_conversations("7342") == []
        assert stranger.load_trace(turns[0].id) is None
        assert stranger.last_turns(chat.id, 5) == ()
        assert stranger.summary_versions(chat.id) == []
        assert stranger.fold_decisions(chat.id) == ()
        assert stranger.all_versions(chat.id) == {}
        assert not stranger.is_document_used("doc")
        assert not stranger.save_summary(chat.id, summary(2, "theirs"))
        for call in _reaching(stranger, chat, turns[0]):
            with pytest.raises((InputError, StoreError)):
                call()
        stranger.delete(chat.id)
        stranger.remove_document_everywhere("doc")
    assert [turn.question for turn in kim.load(chat.id).turns] == ["number 7342", "c"]
    assert kim.load(chat.id).document_ids == ("doc",)
    assert len(kim.versions(chat.id, branch.id)) == 2
    kim.close()
    with pytest.raises(StoreError, match="closed"):
        kim.list_conversations()
    assert lee.list_conversations() == []


def _reaching(store: Store, chat: Conversation, turn: Turn) -> tuple[Callable[[], object], ...]:
    return (
        lambda: store.load(chat.id),
        lambda: store.load_whole(chat.id),
        lambda: store.begin_turn(chat.id, "x"),
        lambda: store.finish_turn(chat.id, answered(turn, "theirs")),
        lambda: store.rename(chat.id, "theirs"),
        lambda: store.pin_conversation(chat.id, True),
        lambda: store.set_system_text(chat.id, "theirs"),
        lambda: store.set_documents(chat.id, []),
        lambda: store.drop_turns_from(chat.id, turn.id),
        lambda: store.put_summary(chat.id, summary(1, "theirs")),
        lambda: store.switch_version(chat.id, turn.id),
        lambda: store.versions(chat.id, turn.id),
        lambda: store.create_conversation(conversation_id=chat.id),
    )


# The same in both


def test_ids_are_in_the_same_order_and_as_long_in_both(store: Store) -> None:
    ids = ["b", "A", "a", "Z", "é", "_", "가", "10", "9", "~", "😀"]
    for one in ids:
        store.create_conversation(conversation_id=one)
    with store._database.write() as connection:
        connection.execute(sa.update(store_schema.conversations).values(updated="2026"))
    assert [info.id for info in store.list_conversations()] == sorted(ids)
    with pytest.raises(InputError, match="255"):
        store.create_conversation(conversation_id="x" * 256)
    long = Turn("t" * 5000, (Message("m" * 5000, "user", "hello"),))
    stored = store.import_conversation(Conversation("c" * 5000, turns=(long,)))
    assert stored.turns[0].question == "hello"
    assert len(stored.id) == 32


def test_names_of_attached_documents_are_compared_letter_for_letter(store: Store) -> None:
    chat = store.create_conversation()
    turn = store.begin_turn(chat.id, "x")
    store.finish_turn(chat.id, _with_notice(answered(turn, "y"), "Message 50%_a.txt"))
    assert store.is_attached("Message 50%_a.txt")
    assert not store.is_attached("message 50%_a.txt")
    assert not store.is_attached("Message 50xxa.txt")


def test_ids_that_no_database_can_hold_are_looked_for_all_the_same(store: Store) -> None:
    for odd in ("\0", "a\ud800", "x" * 10_000):
        with pytest.raises(InputError):
            store.load(odd)
        assert store.load_trace(odd) is None
    chat = store.create_conversation(conversation_id="a\0b")
    assert store.load("a\0b").id == chat.id == "a\ufffdb"
    say(store, "a\0b", "x")
    store.delete("a\0b")
    assert store.list_conversations() == []


def test_times_are_utc_whatever_the_server_says(postgres: PostgresServer) -> None:
    url = postgres.fresh() + "%20-c%20timezone%3DAsia/Seoul"
    with Store(url) as store:
        chat = store.create_conversation()
        assert chat.created.endswith("+00:00")
        assert store.load(chat.id) == chat
        with store._database.read() as connection:
            assert connection.exec_driver_sql("SHOW timezone").scalar() == "UTC"


def test_the_tables_are_those_of_today(store: Store) -> None:
    with store._database.read() as connection:
        inspector = sa.inspect(connection)
        assert set(inspector.get_table_names()) == set(store_schema.metadata.tables)
        for name, table in store_schema.metadata.tables.items():
            columns = {c["name"]: c["nullable"] for c in inspector.get_columns(name)}
            assert columns == {c.name: c.nullable for c in table.columns}, name
            indexes = {index["name"] for index in inspector.get_indexes(name)}
            assert {index.name for index in table.indexes} <= indexes


# What goes wrong with a server


def test_a_server_that_is_away_is_a_sentence_and_is_found_again(postgres: PostgresServer) -> None:
    with Store(postgres.fresh()) as store:
        chat = store.create_conversation()
        postgres.stop()
        try:
            for call in (store.list_conversations, lambda: store.begin_turn(chat.id, "x")):
                with pytest.raises(StoreError, match="--database-url"):
                    call()
            with pytest.raises(StoreError):
                store.check()
        finally:
            postgres.start()
        store.check()
        say(store, chat.id, "after")
        assert [turn.question for turn in store.load(chat.id).turns] == ["after"]


def test_a_conversation_that_is_locked_for_long_is_a_sentence(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_postgres, "LOCK_TIMEOUT_S", 0.3)
    url = postgres.fresh()
    with Store(url) as store, Store(url) as other:
        chat = store.create_conversation()
        with other._database.write() as connection:
            connection.execute(sa.select(store_schema.conversations).with_for_update())
            assert store.load(chat.id) == chat
            with pytest.raises(StoreError, match="another process"):
                store.begin_turn(chat.id, "x")
        store.begin_turn(chat.id, "x")


def test_a_database_of_another_program_or_encoding_is_refused(postgres: PostgresServer) -> None:
    url = postgres.fresh()
    postgres.run(f"CREATE TABLE {_schema(url)}.library_documents (id TEXT)")
    Store(url).close()
    url = postgres.fresh()
    postgres.run(f"CREATE TABLE {_schema(url)}.bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="another program"):
        Store(url)
    postgres.run("CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="LATIN1"):
        Store(url.replace("/postgres?", "/latin?").partition("&")[0])
    with pytest.raises(StoreError, match="does not exist"):
        Store(url.replace("/postgres?", "/nowhere?"))


def test_a_password_is_in_no_sentence() -> None:
    url = "postgresql://user:geheim@localhost:1/chats?password=verborgen"
    assert "geheim" not in describe(url)
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        Store(url)
    assert "geheim" not in str(caught.value)
    assert "verborgen" not in str(caught.value)


def test_a_password_with_an_at_sign_is_not_taken_for_a_host() -> None:
    with pytest.raises(StoreError, match="%40") as refused:
        describe("postgresql://user:SEC@RETPW@127.0.0.1:9/x")
    assert "RET" not in str(refused.value)
