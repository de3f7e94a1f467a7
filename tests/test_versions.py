"""Edited and retried questions: what was cut off is out of every prompt, and can be brought back.

Markers are words that occur nowhere else, planted in single turns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hands_rig import Rig
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from store_samples import answered

from chatbot.messages import Turn
from chatbot.store import Store

MARKERS = ("QUINCE-11", "WALRUS-22", "ZITHER-33")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    built = Rig(tmp_path)
    yield built
    built.close()


def questions(rig: Rig) -> list[str]:
    return [turn.question for turn in rig.now.turns]


def test_an_edit_takes_later_turns_out_of_everything(rig: Rig) -> None:
    """Markers in turns 2, 5 and 8 of 10, all folded; then turn 3 is edited."""
    turns: list[Turn] = []
    for n in range(1, 15):
        marker = {2: MARKERS[0], 5: MARKERS[1], 8: MARKERS[2]}.get(n, f"room {n}")
        turns.append(rig.ask(f"Item {n}: the chair number {100 + n} goes to {marker}."))
    assert rig.summary.covers >= 8
    rig.edit(turns[2].id, "Item 3: no chair at all.")
    for question in ("Which markers do you know?", "Where does chair 105 go? And 108?"):
        prompt = rig.prompt(question)
        assert MARKERS[0] in prompt
        assert MARKERS[1] not in prompt
        assert MARKERS[2] not in prompt
        assert "Item 3: no chair at all." in prompt
    summary = rig.now.summary
    assert summary is None or summary.covers <= 3
    assert not any(m in repr(summary) for m in MARKERS[1:])
    # The prompt of the edit itself knew nothing of them either, nor did the reading ahead.
    assert not any(m in text for m in MARKERS[1:] for text in rig.chat_prompts[-1:])
    exported = rig.now
    assert not any(m in turn.question for m in MARKERS[1:] for turn in exported.turns)
    assert rig.store.search_conversations(MARKERS[2]) == []


def test_a_branch_keeps_its_own_summary_and_facts(rig: Rig) -> None:
    turns = rig.talk(14)
    rig.chat.edit_summary(rig.id, "The old branch.")
    old = rig.now
    prompt = rig.prompt()
    new = rig.edit(turns[2].id, "Item 2 is a table, number 999.")
    versions = rig.chat.versions(rig.id, new.id)
    assert [v.id for v in versions] == [turns[2].id, new.id]
    assert [v.is_current for v in versions] == [False, True]
    assert [v.turns for v in versions] == [12, 1]
    assert versions[0].question == turns[2].question
    rig.talk(14, start=50)
    assert "The old branch." not in rig.prompt()
    newer = rig.now
    rig.chat.switch_version(rig.id, turns[2].id)
    assert rig.now.turns == old.turns
    assert rig.now.summary == old.summary
    assert rig.prompt() == prompt
    rig.chat.switch_version(rig.id, new.id)
    assert rig.now.turns == newer.turns
    assert rig.now.summary == newer.summary


def test_a_retry_keeps_the_reply_it_replaces(rig: Rig) -> None:
    first = rig.ask("Name a tree.")
    *_, last = rig.chat.retry(rig.id)
    versions = rig.chat.versions(rig.id, last.turn.id)  # type: ignore[union-attr]
    assert [v.question for v in versions] == ["Name a tree."] * 2
    assert versions[0].reply == first.reply
    assert len(rig.now.turns) == 1
    rig.chat.switch_version(rig.id, first.id)
    assert rig.now.turns[0].id == first.id
    assert rig.store.all_versions(rig.id) == {first.id: rig.chat.versions(rig.id, first.id)}


def test_a_question_without_any_reply_is_no_version(rig: Rig) -> None:
    stop = threading.Event()
    stop.set()
    *_, last = rig.chat.reply(rig.id, "Name a tree.", stop=stop)
    assert last.turn.finish == "cancelled"  # type: ignore[union-attr]
    *_, again = rig.chat.retry(rig.id)
    assert len(rig.chat.versions(rig.id, again.turn.id)) == 1  # type: ignore[union-attr]
    assert rig.store.all_versions(rig.id) == {}


def test_branches_of_branches(rig: Rig) -> None:
    a0, a1, a2 = (rig.ask(f"a{n}?") for n in range(3))
    b2 = rig.edit(a2.id, "b2?")
    c1 = rig.edit(a1.id, "c1?")
    assert questions(rig) == ["a0?", "c1?"]
    d0 = rig.edit(a0.id, "d0?")
    assert questions(rig) == ["d0?"]
    rig.chat.switch_version(rig.id, a0.id)
    assert questions(rig) == ["a0?", "c1?"]
    assert [v.id for v in rig.chat.versions(rig.id, c1.id)] == [a1.id, c1.id]
    rig.chat.switch_version(rig.id, a1.id)
    assert questions(rig) == ["a0?", "a1?", "b2?"]
    rig.chat.switch_version(rig.id, a2.id)
    assert questions(rig) == ["a0?", "a1?", "a2?"]
    assert {v.id for v in rig.chat.versions(rig.id, a2.id)} == {a2.id, b2.id}
    assert {v.id for v in rig.chat.versions(rig.id, a0.id)} == {a0.id, d0.id}
    rig.chat.switch_version(rig.id, a2.id)  # It is there already.
    assert questions(rig) == ["a0?", "a1?", "a2?"]
    assert rig.ask("a3?").finish == "stop"
    assert [info.turns for info in rig.store.list_conversations()] == [4]


def test_deleting_a_chat_deletes_its_branches(rig: Rig) -> None:
    turns = rig.talk(14)
    rig.edit(turns[3].id, f"Item {MARKERS[0]}.")
    rig.edit(turns[0].id, f"Item {MARKERS[1]}.")
    assert len(rig.store.versions(rig.id, rig.now.turns[0].id)) == 2
    rig.chat.delete(rig.id)
    assert rig.store.list_conversations() == []
    content = rig.path.read_bytes() + rig.path.with_name("chats.db-wal").read_bytes()
    for text in (*MARKERS, "the chair number"):
        assert text.encode() not in content


def test_the_cache_is_not_reused_past_an_edit(rig: Rig) -> None:
    turns = [rig.ask(f"Short {n}?") for n in range(5)]
    before = rig.engine.calls[-1].prompt_ids
    edited = rig.edit(turns[2].id, "Something else?")
    call = rig.engine.calls[-1]
    assert edited.usage is not None
    same = next(
        (n for n, (a, b) in enumerate(zip(before, call.prompt_ids, strict=False)) if a != b),
        min(len(before), len(call.prompt_ids)),
    )
    assert edited.usage.cached_tokens <= same


def test_two_tabs_edit_the_same_turn(rig: Rig) -> None:
    turns = rig.talk(4)
    done: list[object] = []

    def edit(n: int) -> None:
        try:
            done.append(list(rig.chat.edit(rig.id, turns[1].id, f"Tab {n}?"))[-1])
        except Exception as error:
            done.append(error)

    threads = [threading.Thread(target=edit, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    refused = [e for e in done if isinstance(e, Exception)]
    assert all("still being answered" in str(e) or "no longer" in str(e) for e in refused)
    assert len(refused) == 5
    assert len(rig.now.turns) == 2
    assert len(rig.chat.versions(rig.id, rig.now.turns[1].id)) == 2


class Model:
    """What versions mean, without a database: a tree of questions and the path that is shown."""

    def __init__(self) -> None:
        self.children: dict[str, list[str]] = {"": []}
        self.chosen: dict[str, str] = {}

    def path(self) -> list[str]:
        found, node = [], ""
        while node in self.chosen:
            node = self.chosen[node]
            found.append(node)
        return found

    def put(self, parent: str, name: str) -> None:
        self.children.setdefault(parent, []).append(name)
        self.chosen[parent] = name


@given(steps=st.lists(st.tuples(st.sampled_from("aaes"), st.integers(0, 9)), max_size=16))
@hypothesis_settings(
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_order_of_edits_and_switches(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """The chat shows what a tree of questions shows in which each fork remembers its way."""
    model = Model()
    with Store(tmp_path_factory.mktemp("v") / "chats.db") as store:
        chat = store.create_conversation()

        def ask(text: str, replacing: str | None = None) -> str:
            turn = store.begin_turn(chat.id, text, replacing=replacing)
            store.finish_turn(chat.id, answered(turn, "re"))
            return turn.id

        for kind, n in steps:
            path = model.path()
            at = n % len(path) if path else 0
            parent = path[at - 1] if at else ""
            if kind == "a" or not path:
                model.put(path[-1] if path else "", ask("q"))
            elif kind == "e":
                model.put(parent, ask("q", path[at]))
            else:
                siblings = model.children[parent]
                chosen = siblings[n % len(siblings)]
                model.chosen[parent] = chosen
                store.switch_version(chat.id, chosen)
            path = model.path()
            assert [turn.id for turn in store.load(chat.id).turns] == path
            for place, turn_id in enumerate(path):
                siblings = model.children[path[place - 1] if place else ""]
                assert {v.id for v in store.versions(chat.id, turn_id)} == set(siblings)
