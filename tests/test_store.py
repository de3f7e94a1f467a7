"""The store: what goes in comes out, and what is dropped or deleted is gone."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_samples import CITATION, TRACE, answered, long_chat, say, summary

from chatbot.errors import InputError, StoreError
from chatbot.messages import (
    Notice,
    Usage,
)
from chatbot.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    with Store(place) as opened:
        yield opened


def test_a_turn_with_everything_comes_back_after_a_restart(place: Path | str) -> None:
    with Store(place) as store:
        chat = store.create_conversation("법 이야기", "Be brief.", "chat-1")
        turn = store.begin_turn(chat.id, "제1조가 뭐예요?")
        assert store.load(chat.id).turns == (turn,)
        assert turn.finish == "running"
        full = dataclasses.replace(
            answered(turn, "항입니다 <b>", trace=TRACE),
            citations=(CITATION,),
            usage=Usage(10, 4, 6, 0.5, 1.25),
            finish="length",
            reply_token_ids=(1, 128_009, 7),
            tokenizer_name="llama3",
            notices=(Notice("cut", "It was cut.", {"tokens": 3}),),
            unsupported=("Not there.",),
            best_sentence=CITATION,
        )
        store.finish_turn(chat.id, full)
        store.set_documents(chat.id, ["doc", "other"])
    with Store(place) as store:
        loaded = store.load(chat.id)
        assert loaded.turns == (dataclasses.replace(full, trace=None),)
        assert store.load_trace(turn.id) == TRACE
        assert (loaded.title, loaded.system_text) == ("법 이야기", "Be brief.")
        assert loaded.document_ids == ("doc", "other")
        assert chat.created == loaded.created < loaded.updated


def test_only_a_conversation_with_nothing_in_it_is_dropped_as_empty(store: Store) -> None:
    said, named, told, reading, empty = (store.create_conversation() for _ in range(5))
    store.begin_turn(said.id, "Hello")
    store.rename(named.id, "A name")
    store.set_system_text(told.id, "Be brief.")
    store.set_documents(reading.id, ["doc"])
    for kept in (said, named, told, reading):
        assert not store.drop_if_empty(kept.id) and store.load(kept.id)
    assert store.drop_if_empty(empty.id) and not store.drop_if_empty(empty.id)
    assert len(store.list_conversations()) == 4


def test_unknown_and_taken_ids_are_named(store: Store) -> None:
    store.create_conversation(conversation_id="one")
    with pytest.raises(InputError, match="'one'"):
        store.create_conversation(conversation_id="one")
    for call in (
        lambda: store.load("no"),
        lambda: store.begin_turn("no", "x"),
        lambda: store.rename("no", "x"),
        lambda: store.set_documents("no", ["d"]),
        lambda: store.drop_turns_from("one", "no"),
    ):
        with pytest.raises(InputError, match="'no'"):
            call()
    assert store.load_trace("no") is None
    store.delete("no")


def test_a_reply_to_a_turn_that_is_gone_is_refused(store: Store) -> None:
    chat = store.create_conversation()
    turn = store.begin_turn(chat.id, "x")
    store.drop_turns_from(chat.id, turn.id)
    with pytest.raises(StoreError, match="removed"):
        store.finish_turn(chat.id, answered(turn, "late"))
    assert store.load(chat.id).turns == ()


def test_a_turn_cannot_be_finished_in_another_conversation(store: Store) -> None:
    mine, other = store.create_conversation(), store.create_conversation()
    turn = store.begin_turn(mine.id, "x")
    with pytest.raises(StoreError):
        store.finish_turn(other.id, answered(turn, "y"))
    assert store.load(mine.id).turns == (turn,)


def test_settings_and_documents(store: Store) -> None:
    assert store.get_setting("language", "en") == "en"
    store.set_setting("language", {"ui": "한국어", "n": [1, None]})
    store.set_setting("language", {"ui": "한국어", "n": [2, None]})
    assert store.get_setting("language") == {"ui": "한국어", "n": [2, None]}
    one, two = store.create_conversation(), store.create_conversation()
    store.set_documents(one.id, ["b", "a", "b"])
    store.set_documents(two.id, ["a"])
    assert store.load(one.id).document_ids == ("b", "a")
    store.set_documents(one.id, ["c", "b"])
    assert store.load(one.id).document_ids == ("c", "b")
    store.remove_document_everywhere("b")
    store.remove_document_everywhere("a")
    assert (store.load(one.id).document_ids, store.load(two.id).document_ids) == (("c",), ())


def test_the_list_is_newest_first_with_counts(store: Store) -> None:
    first, second = store.create_conversation("A"), store.create_conversation("B")
    assert [info.title for info in store.list_conversations()] == ["B", "A"]
    say(store, first.id, "x", "y")
    assert [(i.id, i.turns) for i in store.list_conversations()] == [(first.id, 2), (second.id, 0)]


def test_search_finds_titles_and_messages_and_takes_no_pattern(store: Store) -> None:
    names = {
        "percent": "It is 100% sure_thing \\ here",
        "plain": "It is 100 sure things",
        "korean": "대한민국 헌법 Ünicode Straße",
        "decomposed": unicodedata.normalize("NFD", "서울특별시 café"),
    }
    chats = {}
    for name, text in names.items():
        chats[store.create_conversation(f"Title {name}").id] = name
        say(store, next(reversed(chats)), text)

    def found(text: str) -> set[str]:
        return {chats[info.id] for info in store.search_conversations(text)}

    assert found("100%") == found("SURE_thing") == found("\\ here") == {"percent"}
    assert found("헌법") == found("üNICODE") == found("STRASSE") == {"korean"}
    assert found(unicodedata.normalize("NFD", "헌법")) == {"korean"}
    assert found("특별시") == found("CAFÉ") == {"decomposed"}
    assert found("tITLE kor") == {"korean"}
    assert found("  ") == set(names.keys())
    assert found("nowhere") == set()
    assert found("RE: it is") == {"percent", "plain"}
    with pytest.raises(InputError, match="1000"):
        store.search_conversations("x" * 1001)


def test_a_summary_falls_back_when_what_it_covers_is_dropped(store: Store) -> None:
    chat = store.create_conversation()
    turns = say(store, chat.id, *"abcdefgh")
    for covers in (2, 4, 6):
        assert store.save_summary(chat.id, summary(covers, f"S{covers}"))
    store.drop_turns_from(chat.id, turns[6].id)
    assert store.load(chat.id).summary == summary(6, "S6")
    store.drop_turns_from(chat.id, turns[5].id)
    assert store.load(chat.id).summary == summary(4, "S4")
    # As many turns as S6 covered, but other ones.
    say(store, chat.id, "x", "y")
    assert store.load(chat.id).summary == summary(4, "S4")
    store.drop_turns_from(chat.id, turns[0].id)
    assert store.load(chat.id).summary is None
    assert [s.text for s in store.summary_versions(chat.id)] == ["S2", "S4", "S6"]


def test_a_summary_of_dropped_turns_comes_too_late(store: Store) -> None:
    chat = store.create_conversation()
    turns = say(store, chat.id, "a", "b", "c")
    store.drop_turns_from(chat.id, turns[1].id)
    assert not store.save_summary(chat.id, summary(3, "S"))
    say(store, chat.id, "x", "y")
    assert not store.save_summary(chat.id, summary(3, "S"), last_turn_id=turns[2].id)
    assert store.load(chat.id).summary is None
    assert store.save_summary(chat.id, summary(1, "S"), last_turn_id=turns[0].id)
    store.delete(chat.id)
    assert not store.save_summary(chat.id, summary(1, "S"))


def test_a_retry_replaces_its_turn_at_once(store: Store) -> None:
    chat = store.create_conversation()
    turns = say(store, chat.id, "a", "b", "c")
    again = store.begin_turn(chat.id, "b!", replacing=turns[1].id)
    assert [t.question for t in store.load(chat.id).turns] == ["a", "b!"]
    with pytest.raises(InputError):
        store.begin_turn(chat.id, "lost?", replacing="no such turn")
    assert [t.id for t in store.load(chat.id).turns] == [turns[0].id, again.id]


def test_deleting_leaves_nothing_in_the_file(path: Path) -> None:
    secret = "PLUM-7-SECRET"
    with Store(path) as store:
        keep = store.import_conversation(long_chat(3, chat_id="keep"))
        gone = store.create_conversation(f"title {secret}", f"system {secret}")
        turn = store.begin_turn(gone.id, f"question {secret}")
        trace = dataclasses.replace(TRACE, question=secret * 1000)
        store.finish_turn(gone.id, answered(turn, f"reply {secret}", trace=trace))
        store.save_summary(gone.id, summary(1, f"summary {secret}"))
        store.set_documents(gone.id, [f"doc {secret}"])
        store.delete(gone.id)
        assert store.load_trace(turn.id) is None
        assert [info.id for info in store.list_conversations()] == [keep.id]
    contents = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert secret.encode() not in contents
    assert secret.lower().encode() not in contents
