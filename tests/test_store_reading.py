"""Reading a long chat often is quick, and never shows what no longer holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_samples import TRACE, answered, long_chat, say, summary

from chatbot import store_branches
from chatbot.errors import InputError
from chatbot.messages import Fact, RollingSummary
from chatbot.store import Store


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    with Store(place) as opened:
        yield opened


def test_turns_are_parsed_once(store: Store) -> None:
    store.import_conversation(long_chat(20))
    first = store.load("long")
    running = store.begin_turn("long", "more?")
    again = store.load("long")
    assert all(a is b for a, b in zip(first.turns, again.turns, strict=False))
    store.finish_turn("long", answered(running, "yes"))
    assert store.load("long").turns[-1].reply == "yes"
    store.finish_turn("long", answered(running, "no"))
    assert store.load("long").turns[-1].reply == "no"
    assert store.load("long").turns is store.load("long").turns


def test_another_program_changes_the_chat(place: Path | str, store: Store) -> None:
    chat = store.create_conversation()
    turns = say(store, chat.id, "one", "two", "three")
    assert len(store.load(chat.id).turns) == 3
    with Store(place) as other:
        running = other.begin_turn(chat.id, "2?", replacing=turns[1].id)
        assert [t.question for t in store.load(chat.id).turns] == ["one", "2?"]
        assert store.load(chat.id).turns[1].finish == "running"
        other.finish_turn(chat.id, answered(running, "re: 2?"))
        assert store.load(chat.id).turns[1].reply == "re: 2?"
        other.switch_version(chat.id, turns[1].id)
        assert [t.question for t in store.load(chat.id).turns] == ["one", "two", "three"]
        other.delete(chat.id)
    with pytest.raises(InputError):
        store.load(chat.id)


def test_ids_from_elsewhere_may_be_anything(store: Store) -> None:
    chat = long_chat(3)
    ids = ("a\x1fb:stop", "", "\x1f:")
    turns = tuple(dataclasses.replace(t, id=i) for t, i in zip(chat.turns, ids, strict=True))
    stored = store.import_conversation(dataclasses.replace(chat, turns=turns[:1] + turns[2:]))
    assert [turn.id for turn in stored.turns] == [ids[0], ids[2]]
    assert [turn.id for turn in store.load("long").turns] == [ids[0], ids[2]]


def test_the_newest_turns(store: Store) -> None:
    store.import_conversation(long_chat(30))
    newest = store.last_turns("long", 4)
    assert [t.id for t in newest] == [f"long-{n}" for n in range(26, 30)]
    assert [t.id for t in store.last_turns("long", 2, before=newest[0].id)] == [
        "long-24",
        "long-25",
    ]
    assert store.last_turns("long", 2, before="long-0") == ()
    assert store.last_turns("unknown", 2) == ()


def test_a_chat_as_it_was_before_a_turn(store: Store) -> None:
    chat = store.create_conversation()
    turns = say(store, chat.id, *"abcdef")
    facts = (Fact("of a", turns[0].id, "m", True, id="f1"), Fact("of d", turns[3].id, "m", id="f2"))
    store.save_summary(chat.id, RollingSummary("early", 2, 1, facts))
    store.save_summary(chat.id, summary(4, "late"))
    before = store.load(chat.id, before=turns[3].id)
    assert [turn.question for turn in before.turns] == ["a", "b", "c"]
    assert before.summary == RollingSummary("early", 2, 1, facts[:1])
    assert store.load(chat.id, before=turns[1].id).summary is None
    with pytest.raises(InputError, match="no longer in the conversation"):
        store.load(chat.id, before="gone")
    store.begin_turn(chat.id, "D", replacing=turns[3].id)
    assert store.load(chat.id).summary == before.summary


def test_pinned_chats_come_first(store: Store) -> None:
    first, second, third = (store.create_conversation(title) for title in ("one", "two", "three"))
    store.pin_conversation(first.id, True)
    infos = store.list_conversations()
    assert [(info.id, info.pinned) for info in infos] == [
        (first.id, True),
        (third.id, False),
        (second.id, False),
    ]
    assert [info.id for info in store.search_conversations("O")] == [first.id, second.id]
    store.pin_conversation(first.id, False)
    assert [info.id for info in store.list_conversations()][-1] == first.id
    with pytest.raises(InputError):
        store.pin_conversation("no", True)


def test_cut_off_turns_are_not_found(store: Store) -> None:
    chat = store.create_conversation("x")
    turns = say(store, chat.id, "서울에서 만나요", "50% off_now")
    assert [i.id for i in store.search_conversations("울")] == [chat.id]
    assert [i.id for i in store.search_conversations("0% OFF_")] == [chat.id]
    assert store.search_conversations("0%f") == []
    store.begin_turn(chat.id, "other", replacing=turns[0].id)
    assert store.search_conversations("울") == []
    assert len(store.list_conversations()) == 1


def test_a_cut_that_fails_halfway_changes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = store.create_conversation()
    turns = say(store, chat.id, *"abcd")
    store.finish_turn(chat.id, answered(turns[2], "c", trace=TRACE))
    store.save_summary(chat.id, summary(3, "S"))
    before = store.load(chat.id)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store_branches, "_drop_facts_of", fail)
        with pytest.raises(KeyboardInterrupt):
            store.begin_turn(chat.id, "B", replacing=turns[1].id)
    assert store.load(chat.id) == before
    store.finish_turn(chat.id, answered(store.begin_turn(chat.id, "B", replacing=turns[1].id), "x"))
    cut = store.load(chat.id)
    with monkeypatch.context() as patch:
        patch.setattr(store_branches, "_move_covering", fail)
        with pytest.raises(KeyboardInterrupt):
            store.switch_version(chat.id, turns[1].id)
    assert store.load(chat.id) == cut
    store.switch_version(chat.id, turns[1].id)
    assert store.load(chat.id).turns == before.turns
    assert store.load(chat.id).summary == before.summary
    assert store.load_trace(turns[2].id) == TRACE
