"""The store keeps any text, imports whole chats, and does so quickly."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from store_samples import TRACE, answered, long_chat, say, summary

from chatbot.errors import InputError
from chatbot.messages import (
    Conversation,
    Fact,
    Message,
    Notice,
    RollingSummary,
    Turn,
)
from chatbot.store import Store


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    with Store(place) as opened:
        yield opened


@given(text=st.text(st.characters()), name=st.text(st.characters(), min_size=1))
@hypothesis_settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_comes_back_or_shows_what_could_not(store: Store, text: str, name: str) -> None:
    chat = store.create_conversation(title=text, system_text=text)
    turn = store.begin_turn(chat.id, text)
    told = answered(turn, text, trace=dataclasses.replace(TRACE, question=text))
    speaker = (dataclasses.replace(told.assistant[0], name=name),)
    store.finish_turn(chat.id, dataclasses.replace(told, assistant=speaker))
    loaded = store.load(chat.id)
    expected = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert loaded.turns[0].user[0].content == turn.user[0].content
    assert loaded.turns[0].user[0].content in (expected, joined.replace("\0", "\ufffd"))
    assert loaded.turns[0].assistant[0].content == loaded.system_text == turn.user[0].content
    trace = store.load_trace(turn.id)
    assert trace is not None
    assert trace.question == turn.user[0].content
    store.search_conversations(text)


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("half \ud83d, other \ude00", "half \ufffd, other \ufffd"),
        ("pair \ud83d\ude00", "pair 😀"),
        ("👩‍👩‍👧 🇰🇷 e\u0301 𠮷 \u202e", "👩‍👩‍👧 🇰🇷 e\u0301 𠮷 \u202e"),
    ],
)
def test_what_no_database_can_hold_is_visible(store: Store, given_text: str, kept: str) -> None:
    chat = store.create_conversation()
    say(store, chat.id, given_text)
    assert store.load(chat.id).turns[0].question == kept


def test_what_is_not_json_is_refused_before_it_is_written(store: Store) -> None:
    chat = store.create_conversation()
    turn = store.begin_turn(chat.id, "x")
    strange = dataclasses.replace(turn, notices=(Notice("a", "b", {"x": object()}),))
    with pytest.raises(TypeError, match="object"):
        store.finish_turn(chat.id, strange)
    fine = dataclasses.replace(turn, notices=(Notice("a", "b", {"x": Path("p")}),))
    store.finish_turn(chat.id, fine)
    assert store.load(chat.id).turns[0].notices[0].values == {"x": "p"}


def test_the_first_question_names_a_nameless_chat(store: Store) -> None:
    chat, named = store.create_conversation(), store.create_conversation("Mine\n two ")
    for one in (chat, named):
        say(store, one.id, "\n첫 질문입니다\n둘째 줄", "another")
    assert store.load(chat.id).title == "첫 질문입니다"
    assert store.load(named.id).title == "Mine two"
    store.rename(chat.id, "Renamed")
    assert store.load(chat.id).title == "Renamed"


def test_an_import_keeps_ids_times_names_and_traces(store: Store) -> None:
    chat = dataclasses.replace(
        long_chat(3),
        summary=summary(2, "S"),
        document_ids=("d",),
        system_text="sys",
        created="1999",
    )
    stored = store.import_conversation(chat)
    bare = tuple(dataclasses.replace(turn, trace=None) for turn in chat.turns)
    assert stored == dataclasses.replace(chat, turns=bare, updated=stored.updated)
    assert store.load_trace(stored.turns[1].id) == chat.turns[1].trace


def test_importing_twice_gives_two_chats(store: Store) -> None:
    facts = (Fact("x", "long-1", "u1"), Fact("y", "elsewhere", "u9"))
    chat = dataclasses.replace(long_chat(3), summary=RollingSummary("S", 2, 1, facts))
    first, second = store.import_conversation(chat), store.import_conversation(chat)
    assert first.id != second.id
    assert [t.message_ids for t in first.turns] == [t.message_ids for t in second.turns]
    assert not {t.id for t in first.turns} & {t.id for t in second.turns}
    assert second.summary is not None
    assert [f.turn_id for f in second.summary.facts] == [second.turns[1].id, "elsewhere"]
    assert store.load(first.id) == first


def test_an_import_gets_fresh_ids_only_where_one_is_taken(store: Store) -> None:
    facts = (Fact("x", "long-1", "u1"), Fact("y", "long-2", "u2"), Fact("z", "", "u9"))
    chat = dataclasses.replace(long_chat(3), summary=RollingSummary("S", 2, 1, facts))
    store.import_conversation(chat)
    a, b, c = chat.turns
    more = (a, b, dataclasses.replace(c, id="free"), long_chat(4).turns[3])
    second = store.import_conversation(dataclasses.replace(chat, id="second", turns=more))
    ids = [turn.id for turn in second.turns]
    assert (second.id, ids[2:]) == ("second", ["free", "long-3"])
    assert not {"long-0", "long-1"} & set(ids[:2])
    assert second.summary is not None
    assert [f.turn_id for f in second.summary.facts] == [ids[1], "long-2", ""]


def test_a_turn_id_that_comes_again_costs_no_other_id(store: Store) -> None:
    twins = [dataclasses.replace(turn, id="t") for turn in long_chat(3).turns]
    facts = (Fact("x", "t", "u1"),)
    chat = Conversation("t", "", tuple(twins), RollingSummary("S", 2, 1, facts))
    stored = store.import_conversation(chat)
    assert (stored.id, stored.turns[0].id) == ("t", "t")
    assert len({turn.id for turn in stored.turns}) == 3
    assert stored.summary is not None and stored.summary.facts[0].turn_id == "t"
    # A chat's id is one of chats: a turn that has it takes it from none.
    turn = dataclasses.replace(long_chat(1).turns[0], id="lone")
    store.import_conversation(Conversation("other", turns=(turn,)))
    assert store.import_conversation(Conversation("lone", turns=(turn,))).id == "lone"


def test_a_chat_that_was_deleted_is_imported_with_its_ids(store: Store) -> None:
    chat = long_chat(3)
    store.import_conversation(chat)
    copy = store.import_conversation(chat)
    store.delete(chat.id)
    again = store.import_conversation(chat)
    assert copy.id != again.id == chat.id
    assert [turn.id for turn in again.turns] == [turn.id for turn in chat.turns]


def test_an_import_must_make_sense(store: Store) -> None:
    twice = Turn("t", (Message("same", "user", "a"),), (Message("same", "assistant", "b"),))
    with pytest.raises(InputError, match="'same' occurs twice"):
        store.import_conversation(Conversation("c", turns=(twice,)))
    with pytest.raises(InputError, match="only 3"):
        store.import_conversation(dataclasses.replace(long_chat(3), summary=summary(4, "S")))
    assert store.list_conversations() == []
    running = Turn("t", (Message("a", "user", "first?"),), finish="running")
    stored = store.import_conversation(Conversation("", turns=(running,)))
    assert stored.id
    assert (stored.turns[0].finish, stored.title) == ("interrupted", "first?")


def test_speed_of_import_and_load_up_to_5000_turns(store: Store) -> None:
    started = time.process_time()
    store.import_conversation(long_chat(1000, chat_id="a"))
    import_s = time.process_time() - started
    store.import_conversation(long_chat(5000, chat_id="b"))
    load_s = {}
    for chat_id in ("a", "b"):
        times = []
        for _ in range(5):
            started = time.process_time()
            store.load(chat_id)
            times.append(time.process_time() - started)
        load_s[chat_id] = min(times)
    print(
        f"import 1000: {import_s:.2f} s, load 1000: {load_s['a']:.3f} s, 5000: {load_s['b']:.3f} s"
    )
    assert import_s < 2.0
    assert load_s["a"] < 0.15
    # What is known already is not read again.
    assert load_s["b"] < 0.04
