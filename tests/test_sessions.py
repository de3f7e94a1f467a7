"""Many people at once over one model: no word of one chat is in another; and cases of stopping."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hands_rig import Rig

from chatbot.errors import InputError
from chatbot.messages import Turn

PEOPLE, TURNS = 20, 10


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    built = Rig(tmp_path, with_library=True)
    yield built
    built.close()


def word(number: int) -> str:
    return f"CODE-{number:02}-X"


def foreign(text: str, number: int) -> list[str]:
    return [word(n) for n in range(PEOPLE) if n != number and word(n) in text]


def in_threads(work: list[threading.Thread]) -> None:
    for thread in work:
        thread.start()
    for thread in work:
        thread.join(120)
        assert not thread.is_alive()


def test_twenty_people_do_not_mix(rig: Rig, tmp_path: Path) -> None:
    """BC-77: each with a word of their own, ten turns, a document, folds, an edit, one model."""
    assert rig.library is not None
    ids = [rig.store.create_conversation().id for _ in range(PEOPLE)]
    cited: list[tuple[int, Turn]] = []

    def talk(number: int) -> None:
        assert rig.library is not None
        path = tmp_path / f"of{number}.txt"
        path.write_text(f"The password of the house is {word(number)}. Keep it.", "utf-8")
        report = rig.library.ingest(path)
        rig.store.set_documents(ids[number], [report.document_id or ""])
        for n in range(TURNS):
            *_, last = rig.chat.reply(ids[number], f"Thing {n} of {word(number)} costs {n * 7}.")
            cited.append((number, last.turn))  # type: ignore[union-attr]
            rig.chat.wait_for_folds(60)  # the next question would end them
        rig.chat.add_fact(ids[number], f"The word is {word(number)}.")
        first = rig.store.load(ids[number]).turns[2]
        list(rig.chat.edit(ids[number], first.id, f"Thing 2 of {word(number)} is gone."))

    in_threads([threading.Thread(target=talk, args=(n,)) for n in range(PEOPLE)])
    assert rig.chat.wait_for_folds(60)
    assert rig.summary_prompts, "there were folds"
    for call in rig.engine.calls:
        if call.conversation_id in ids:
            number = ids.index(call.conversation_id)
            assert word(number) in call.prompt_text
        else:  # A summary is asked for outside of any conversation.
            (number, *others) = [n for n in range(PEOPLE) if word(n) in call.prompt_text]
            assert not others
        assert not foreign(call.prompt_text, number)
    for number, conversation_id in enumerate(ids):
        chat = rig.store.load_whole(conversation_id)
        assert not foreign(repr(chat), number)
        assert len(chat.turns) == 3
        assert not foreign(repr(rig.store.summary_versions(conversation_id)), number)
        assert not foreign(repr(rig.chat.versions(conversation_id, chat.turns[2].id)), number)
    for number, turn in cited:
        assert all(c.document == f"of{number}.txt" for c in turn.citations)
    for conversation_id, kept in rig.engine._kept.items():
        assert not foreign(rig.engine.tokenizer.decode(tuple(kept)), ids.index(conversation_id))


def test_many_tabs_of_one_chat_change_it_all_the_time(rig: Rig) -> None:
    """Questions, edits, versions, facts, forgetting at once: each is done whole or refused."""
    rig.talk(6)
    faults: list[Exception] = []

    def tab(seed: int) -> None:
        chance = random.Random(seed)
        for n in range(12):
            now = rig.now
            turn = chance.choice(now.turns) if now.turns else None
            try:
                what = chance.randrange(6)
                if what == 0 or turn is None:
                    list(rig.chat.reply(rig.id, f"Tab {seed} asks {n}: where is chair {n}?"))
                elif what == 1:
                    list(rig.chat.edit(rig.id, turn.id, f"Tab {seed} edits {n}."))
                elif what == 2:
                    chosen = chance.choice(rig.chat.versions(rig.id, turn.id))
                    rig.chat.switch_version(rig.id, chosen.id)
                elif what == 3:
                    rig.chat.add_fact(rig.id, f"Fact {seed}-{n}")
                elif what == 4:
                    rig.chat.edit_summary(rig.id, f"Words of tab {seed}, {n}.")
                else:
                    rig.chat.forget_turn(rig.id, turn.id)
            except InputError:
                pass  # Refused in one sentence: in the way of another tab, or the turn is gone.
            except Exception as error:
                faults.append(error)

    in_threads([threading.Thread(target=tab, args=(seed,)) for seed in range(5)])
    assert rig.chat.wait_for_folds(30)
    assert faults == []
    now = rig.now
    assert all(turn.finish in ("stop", "length") for turn in now.turns)
    assert now.summary is None or now.summary.covers <= len(now.turns)
    assert rig.ask("And now?").finish == "stop"
    assert len({turn.id for turn in rig.now.turns}) == len(rig.now.turns)
