"""The user's hands on summary and facts: what is edited holds, whatever is folded later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hands_rig import SUMMARY, Rig

from chatbot.busy import Busy
from chatbot.engine.scripted import ScriptedReply
from chatbot.errors import InputError
from chatbot.messages import Fact

OWN = "Ana runs the museum of chairs. 결정은 김민수가 한다."


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    built = Rig(tmp_path)
    yield built
    built.close()


@pytest.fixture
def folded(rig: Rig) -> Rig:
    """A chat with a summary and facts."""
    rig.talk(14)
    assert rig.summary.covers > 3
    assert rig.summary.facts
    return rig


def wait_until(true: Callable[[], bool], timeout_s: float = 0.3) -> bool:
    ends = time.monotonic() + timeout_s
    while not true() and time.monotonic() < ends:
        time.sleep(0.01)
    return true()


def after(rig: Rig, fact: Fact) -> str:
    """The turn behind the one that a fact was said in."""
    ids = [turn.id for turn in rig.now.turns]
    return ids[ids.index(fact.turn_id) + 1]


def test_an_edited_summary_is_kept_word_for_word_by_later_folds(folded: Rig) -> None:
    covers = folded.summary.covers
    folded.chat.edit_summary(folded.id, f"  {OWN}\n")
    assert (folded.summary.text, folded.summary.origin) == (OWN, "edited")
    assert folded.summary.covers == covers
    folded.talk(14, start=14)
    assert folded.summary.covers > covers
    assert folded.summary.origin != "edited"
    assert folded.summary.text.startswith(OWN)
    assert OWN in folded.prompt()


def test_an_emptied_summary_is_empty_and_later_folds_go_on(folded: Rig) -> None:
    folded.chat.edit_summary(folded.id, " ")
    for fact in folded.summary.facts:
        folded.chat.delete_fact(folded.id, fact.id)
    assert folded.summary.text == ""
    assert not [s for s in folded.chat.context(folded.id, "x").segments if s.kind == "summary"]
    folded.talk(10, start=14)
    assert folded.summary.text


def test_a_summary_longer_than_its_cap_is_refused_with_figures(folded: Rig) -> None:
    before = folded.summary
    with pytest.raises(InputError, match=r"\d+ tokens and may have 120"):
        folded.chat.edit_summary(folded.id, "word " * 400)
    assert folded.summary == before


def test_a_summary_and_facts_can_be_written_before_the_first_fold(rig: Rig) -> None:
    rig.chat.edit_summary(rig.id, OWN)
    fact = rig.chat.add_fact(rig.id, "  My desk is\n number 77. ")
    assert fact.text == "My desk is number 77."
    assert OWN in rig.prompt()
    assert "- My desk is number 77." in rig.prompt()
    rig.talk(14)
    assert rig.summary.covers > 3
    assert rig.summary.text.startswith(OWN)
    assert fact in rig.summary.facts
    assert "- My desk is number 77." in rig.prompt()


def test_facts_alone_need_no_summary(rig: Rig) -> None:
    rig.chat.add_fact(rig.id, "My desk is number 77.")
    assert "- My desk is number 77." in rig.prompt()
    assert rig.ask("Where do I sit?").finish == "stop"
    assert "- My desk is number 77." in rig.chat_prompts[-1]


def test_an_edited_fact_and_a_pinned_one_survive_later_folds(folded: Rig) -> None:
    edited, pinned = folded.summary.facts[:2]
    changed = folded.chat.edit_fact(folded.id, edited.id, "Chair 100 went to the attic.")
    folded.chat.pin_fact(folded.id, pinned.id, True)
    assert (changed.id, changed.edited, changed.turn_id) == (edited.id, True, edited.turn_id)
    folded.talk(30, start=14)
    assert changed in folded.summary.facts
    assert folded.fact(pinned.text).pinned
    assert edited.text not in [fact.text for fact in folded.summary.facts]


def test_a_deleted_fact_stays_deleted(rig: Rig) -> None:
    """Also when its turn is folded once more, after an edit had taken the summary back."""
    rig.ask("I am Ana Horvat and I prefer room 4711, decided on 3 May.")
    rig.ask("I am Ana Horvat and I prefer desk 8122, decided on 4 May.")
    third, *_ = rig.talk(14)
    gone = rig.fact("4711")
    rig.chat.delete_fact(rig.id, gone.id)
    rig.talk(14, start=14)
    assert rig.fact("8122")
    assert gone.id not in [fact.id for fact in rig.summary.facts]
    rig.edit(third.id, "Let us begin again.")
    assert rig.summary.covers == 0
    rig.talk(14)
    assert rig.summary.covers > 2
    assert rig.fact("8122")
    assert gone.id not in [fact.id for fact in rig.summary.facts]


def test_what_was_said_of_a_fact_outlasts_a_rollback(folded: Rig) -> None:
    first = folded.summary.facts[0]
    folded.chat.edit_fact(folded.id, first.id, "Chair 100 went to the attic.")
    own = folded.chat.add_fact(folded.id, "My desk is number 77.")
    folded.edit(after(folded, first), "Let us begin again.")
    kept = [fact.text for fact in folded.summary.facts]
    assert {"Chair 100 went to the attic.", own.text} <= set(kept)
    assert first.text not in kept
    folded.talk(14, start=20)
    assert first.turn_id in [turn.id for turn in folded.now.turns[: folded.summary.covers]]
    texts = [fact.text for fact in folded.summary.facts]
    assert "Chair 100 went to the attic." in texts
    assert first.text not in texts


def test_a_fact_goes_with_its_turn(folded: Rig) -> None:
    pinned = folded.summary.facts[-1]
    folded.chat.pin_fact(folded.id, pinned.id, True)
    folded.edit(pinned.turn_id, "Let us begin again.")
    summary = folded.now.summary
    assert pinned.id not in [fact.id for fact in (summary.facts if summary else ())]
    assert pinned.text not in folded.prompt()


@pytest.mark.parametrize("text", ["", " \n", "x" * 401])
def test_what_is_no_fact_is_refused(folded: Rig, text: str) -> None:
    before = folded.summary
    with pytest.raises(InputError):
        folded.chat.add_fact(folded.id, text)
    with pytest.raises(InputError):
        folded.chat.edit_fact(folded.id, before.facts[0].id, text)
    assert folded.summary == before


def test_facts_that_always_stay_have_a_cap(folded: Rig) -> None:
    with pytest.raises(InputError, match="may have 120"):
        for n in range(100):
            folded.chat.add_fact(folded.id, f"The code of the door number {n} is {n * 77}.")
    assert folded.ask("And now?").finish == "stop"


def test_unknown_facts_and_chats_are_named(folded: Rig) -> None:
    chat = folded.chat
    for call in (
        lambda: chat.edit_fact(folded.id, "no", "x"),
        lambda: chat.pin_fact(folded.id, "no", True),
        lambda: chat.delete_fact(folded.id, "no"),
    ):
        with pytest.raises(InputError, match="no longer in the list"):
            call()
    for other in (lambda: chat.edit_summary("no", "x"), lambda: chat.add_fact("no", "x")):
        with pytest.raises(InputError, match="no conversation 'no'"):
            other()
    for turn in (
        lambda: chat.forget_turn(folded.id, "no"),
        lambda: chat.versions(folded.id, "no"),
        lambda: chat.switch_version(folded.id, "no"),
    ):
        with pytest.raises(InputError, match="no longer in the conversation"):
            turn()


def test_nothing_is_changed_while_a_reply_runs(folded: Rig) -> None:
    before = folded.now
    fact, first = folded.summary.facts[0], before.turns[0]
    folded.answering()
    chat = folded.chat
    calls: list[Callable[[], object]] = [
        lambda: chat.edit_summary(folded.id, "x"),
        lambda: chat.add_fact(folded.id, "x is 7"),
        lambda: chat.edit_fact(folded.id, fact.id, "x"),
        lambda: chat.pin_fact(folded.id, fact.id, True),
        lambda: chat.delete_fact(folded.id, fact.id),
        lambda: chat.forget_turn(folded.id, first.id),
        lambda: chat.switch_version(folded.id, first.id),
        lambda: list(chat.edit(folded.id, first.id, "x")),
        lambda: list(chat.retry(folded.id)),
    ]
    for call in calls:
        with pytest.raises(InputError, match="still being answered"):
            call()
    folded.end()
    assert folded.now.summary == before.summary
    assert folded.now.turns[:-1] == before.turns
    chat.edit_summary(folded.id, OWN)
    assert folded.summary.text == OWN


def test_a_reply_of_another_program_counts_as_well(folded: Rig) -> None:
    folded.store.begin_turn(folded.id, "Asked elsewhere?")
    with pytest.raises(InputError, match="still being answered"):
        folded.chat.add_fact(folded.id, "x is 7")


def test_many_tabs_edit_at_once_and_nothing_is_lost(folded: Rig) -> None:
    errors: list[Exception] = []

    def add(n: int) -> None:
        try:
            folded.chat.add_fact(folded.id, f"Box {n}")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    texts = {fact.text for fact in folded.summary.facts}
    assert {f"Box {n}" for n in range(12)} <= texts


def test_a_summary_that_is_being_made_gives_way_to_the_user(folded: Rig) -> None:
    """What was there before the edit is in no summary that comes after it."""
    n_before = len(folded.summary_prompts)
    folded.summary_pause = ScriptedReply(SUMMARY, stall_after_tokens=2)
    for n in range(14, 40):
        list(
            folded.chat.reply(folded.id, f"Item {n}: the chair number {100 + n} goes to room {n}.")
        )
        if wait_until(lambda: len(folded.summary_prompts) > n_before):
            break
    assert len(folded.summary_prompts) > n_before
    folded.chat.edit_summary(folded.id, OWN)
    folded.summary_pause = None
    assert folded.chat.wait_for_folds(20)
    assert folded.summary.kept == OWN
    assert folded.summary.text.startswith(OWN)


def test_an_edit_waits_for_an_edit_and_a_reply_for_it_too() -> None:
    busy = Busy()
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def edit() -> None:
        with busy.edit("c"):
            inside.set()
            go_on.wait(10)
            order.append("edit")

    def reply() -> None:
        with busy.reply("c", threading.Event()):
            order.append("reply")

    first, second = threading.Thread(target=edit), threading.Thread(target=reply)
    first.start()
    assert inside.wait(10)
    second.start()
    assert not busy.wait("c", 0.05)
    go_on.set()
    first.join(10)
    second.join(10)
    assert order == ["edit", "reply"]
    assert busy.wait("c", 0)


def test_deleting_a_chat_waits_for_its_reply(folded: Rig) -> None:
    folded.answering()
    folded.chat.delete(folded.id)
    folded.thread.join(20)
    assert not folded.chat.is_running(folded.id)
    assert folded.store.list_conversations() == []
    assert folded.engine.memory().kv_by_conversation == {}
