"""Forget this: nothing of the turn is in any prompt, summary, trace, cache, export or file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hands_rig import Rig

from chatbot.engine.scripted import ScriptedReply
from chatbot.export_messages import export_conversation
from chatbot.forgetting import scrubbed, without_turn
from chatbot.messages import (
    Conversation,
    Dropped,
    Fact,
    FoldDecision,
    Message,
    Notice,
    PromptTrace,
    RollingSummary,
    Segment,
    Turn,
)
from chatbot.records import TRACE, from_json, to_json, to_plain

SECRET = "ZITHER-33"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    built = Rig(tmp_path, with_library=True)
    yield built
    built.close()


def talk_with_secret(rig: Rig, at: int, turns: int = 16) -> Turn:
    for n in range(turns):
        place = f"to {SECRET}" if n == at else f"to room {n}"
        turn = rig.ask(f"Item {n}: the chair number {100 + n} goes {place}.")
        if n == at:
            told = turn
    return told


def content(rig: Rig) -> bytes:
    return b"".join(path.read_bytes() for path in rig.path.parent.glob("chats.db*"))


def everything(rig: Rig) -> str:
    """All that is known of the chat, and what any prompt of it would hold."""
    traces = [rig.store.load_trace(turn.id) for turn in rig.now.turns]
    known = json.dumps(export_conversation(rig.now), ensure_ascii=False)
    versions = repr(rig.store.summary_versions(rig.id)) + repr(rig.store.fold_decisions(rig.id))
    found = rig.prompt("Where does the chair number 102 go?")
    return "\n".join([known, versions, found, *map(repr, traces)])


@pytest.mark.parametrize("at", [0, 2, 14])
def test_nothing_is_left_of_a_forgotten_turn(rig: Rig, at: int) -> None:
    told = talk_with_secret(rig, at)
    # Have it recalled, borrowed for a query, and remembered by hand.
    rig.ask("Where does the chair number 102 go?")
    rig.ask("And why there?")
    covers = rig.summary.covers
    for fact in rig.summary.facts:
        if SECRET in fact.text:
            rig.chat.pin_fact(rig.id, fact.id, True)
    if at < covers:
        refused = FoldDecision("2026", covers, False, None, (f"invents {SECRET}",), SECRET)
        rig.store.add_fold_decisions(rig.id, [refused])
        told_of = Notice("summary_refused", f"Refused: invents {SECRET}.", {"reason": SECRET})
        last = rig.now.turns[-1]
        trace = rig.store.load_trace(last.id)
        assert trace is not None
        trace = replace(trace, notices=(told_of,))
        rig.store.finish_turn(rig.id, replace(last, notices=(told_of,), trace=trace))
    before = rig.now
    assert SECRET in everything(rig)
    assert SECRET.encode() in content(rig)
    rig.chat.forget_turn(rig.id, told.id)
    assert rig.chat.wait_for_folds(20)
    left = [replace(t, notices=()) for t in before.turns if t.id != told.id]
    assert left == [replace(t, notices=()) for t in rig.now.turns]
    kept = rig.engine._kept.get(rig.id, ())  # Of the front of the next prompt, read ahead.
    assert SECRET not in rig.engine.tokenizer.decode(tuple(kept))
    assert SECRET not in everything(rig)
    assert SECRET.encode() not in content(rig)
    if at < covers:
        assert rig.summary.covers >= covers - 1
        assert rig.summary.text
    assert rig.store.search_conversations(SECRET) == []
    assert rig.ask("And now?").finish == "stop"
    assert SECRET not in rig.chat_prompts[-1]


def test_summary_and_facts_of_the_others_stay(rig: Rig) -> None:
    told = talk_with_secret(rig, 2)
    rig.chat.edit_summary(rig.id, f"Ana keeps chairs. One goes to {SECRET}.")
    own = rig.chat.add_fact(rig.id, "My desk is number 77.")
    facts = [fact for fact in rig.summary.facts if fact.turn_id != told.id]
    rig.chat.forget_turn(rig.id, told.id)
    assert rig.summary.kept == "Ana keeps chairs."
    assert rig.summary.text.startswith("Ana keeps chairs.")
    assert rig.summary.origin == "extractive"
    assert list(rig.summary.facts) == facts
    assert own in facts
    assert "the chair number" in rig.summary.text


def test_the_title_goes_with_the_question_that_gave_it(rig: Rig) -> None:
    first, second = rig.ask(f"My code is {SECRET}."), rig.ask("Name a tree.")
    assert SECRET in rig.now.title
    rig.chat.forget_turn(rig.id, first.id)
    assert rig.now.title == "Name a tree."
    rig.chat.forget_turn(rig.id, second.id)
    assert (rig.now.title, rig.now.turns) == ("", ())
    rig.store.rename(rig.id, "Trees")
    third = rig.ask("Name a flower.")
    rig.chat.forget_turn(rig.id, third.id)
    assert rig.now.title == "Trees"


def test_versions_of_a_forgotten_turn_go_too(rig: Rig) -> None:
    first = rig.ask("Name a tree.")
    told = rig.ask(f"My code is {SECRET}.")
    edited = rig.edit(told.id, "My code is nothing to you.")
    rig.ask("Name a flower.")
    rig.chat.forget_turn(rig.id, edited.id)
    assert [turn.question for turn in rig.now.turns] == ["Name a tree.", "Name a flower."]
    assert SECRET.encode() not in content(rig)
    again = rig.edit(rig.now.turns[1].id, "Name a fruit.")
    assert len(rig.chat.versions(rig.id, again.id)) == 2
    assert len(rig.chat.versions(rig.id, first.id)) == 1


def test_a_branch_that_follows_the_turn_forgets_it_as_well(rig: Rig) -> None:
    told = talk_with_secret(rig, 2)
    later = rig.now.turns[10]
    rig.edit(later.id, "Let us go on in another way.")
    rig.chat.forget_turn(rig.id, told.id)
    assert SECRET.encode() not in content(rig)
    rig.chat.switch_version(rig.id, later.id)
    assert len(rig.now.turns) == 15
    assert SECRET not in everything(rig)
    rig.talk(3, start=40)
    assert SECRET not in everything(rig)
    assert rig.summary.covers > 0


def test_a_message_that_became_a_document_is_deleted_with_its_turn(rig: Rig) -> None:
    assert rig.library is not None
    long = f"The code is {SECRET}. " + "Chairs are made of wood and nails. " * 300
    told = rig.ask(long)
    later = rig.ask("Which code is it?")
    assert SECRET in repr(rig.store.load_trace(later.id))
    other = rig.store.create_conversation()
    assert [n.code for n in told.notices if n.code == "question_attached"]
    assert len(rig.library.documents()) == 1
    same = rig.ask(long, other.id)
    rig.chat.forget_turn(rig.id, told.id)
    assert len(rig.library.documents()) == 1, "another chat still has it"
    assert SECRET not in everything(rig)
    rig.chat.forget_turn(other.id, same.id)
    assert rig.library.documents() == []
    assert rig.store.load(other.id).document_ids == ()


def test_a_deleted_chat_takes_the_documents_of_its_messages_along(rig: Rig) -> None:
    assert rig.library is not None
    long = f"The code is {SECRET}. " + "Chairs are made of wood and nails. " * 300
    told = rig.ask(long)
    rig.edit(told.id, "Never mind the code.")  # another version of the turn still has it
    other = rig.store.create_conversation()
    rig.ask(long, other.id)
    reader = rig.store.create_conversation()
    [document] = rig.library.documents()
    rig.store.set_documents(reader.id, [document.id])
    rig.chat.delete(other.id)
    assert len(rig.library.documents()) == 1, "the first chat still has it"
    rig.chat.delete(rig.id)
    assert len(rig.library.documents()) == 1, "a chat that uses it still does"
    rig.store.set_documents(reader.id, [])
    last = rig.store.create_conversation()
    rig.ask(long, last.id)
    rig.chat.delete(last.id)
    assert rig.library.documents() == []
    assert SECRET.encode().lower() not in data_folder(rig)
    rig.chat.delete(last.id)


def data_folder(rig: Rig) -> bytes:
    files = [path for path in rig.path.parent.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files).lower()


def test_later_turns_lose_what_they_were_shown_of_a_message_that_became_a_document(
    rig: Rig,
) -> None:
    first = rig.ask("Name a tree.")
    filler = (f"Chair number {n} is made of oak wood and of {n + 7} nails. " for n in range(200))
    told = rig.ask(f"The code of the safe is {SECRET}. " + "".join(filler))
    assert rig.library is not None
    [document] = rig.library.documents()
    rig.pause = ScriptedReply(f"The code of the safe is {SECRET}.")
    elsewhere = rig.store.create_conversation()
    rig.store.set_documents(elsewhere.id, [document.id])
    asked = [rig.ask("What is the code of the safe?", c) for c in (rig.id, elsewhere.id)]
    rig.store.set_documents(elsewhere.id, [])
    assert all(SECRET in repr(turn.citations) for turn in asked)
    # Another way on from the beginning, which the document is searched for as well.
    rig.pause = None
    rig.edit(first.id, "Which code does the safe have?")
    aside = rig.now.turns[0]
    rig.chat.switch_version(rig.id, first.id)
    # The replies say it themselves: they are the user's to forget.
    replies = {turn.id: replace(turn, assistant=(), reply_token_ids=()) for turn in asked}
    for owner, turn in zip((rig.id, elsewhere.id), asked, strict=True):
        trace = rig.store.load_trace(turn.id)
        rig.store.finish_turn(owner, replace(replies[turn.id], trace=trace))
    rig.chat.forget_turn(rig.id, told.id)
    assert rig.library.documents() == []
    for turn in (*asked, aside):
        trace = rig.store.load_trace(turn.id)
        assert trace is not None
        assert SECRET not in repr(trace)
        assert sum(segment.tokens for segment in trace.segments) == trace.prompt_tokens
    for owner in (rig.id, elsewhere.id):
        [turn] = [turn for turn in rig.store.load(owner).turns if turn.id in replies]
        assert (turn.citations, turn.best_sentence) == ((), None)
    assert SECRET not in everything(rig)
    assert SECRET.encode().lower() not in data_folder(rig)


def test_a_document_of_another_version_of_the_turn_goes_as_well(rig: Rig) -> None:
    told = rig.ask(f"The code is {SECRET}. " + "Chairs are made of wood and nails. " * 300)
    edited = rig.edit(told.id, "Never mind the code.")
    assert rig.library is not None
    assert len(rig.library.documents()) == 1
    rig.chat.forget_turn(rig.id, edited.id)
    assert rig.library.documents() == []
    assert rig.now.title == ""
    assert SECRET.encode().lower() not in data_folder(rig)


def test_traces_keep_their_sizes_and_lose_the_words() -> None:
    def segment(kind: str, text: str, *ids: str) -> Segment:
        return Segment(kind, 5, text, ids)  # type: ignore[arg-type]

    mine, other = segment("turn", SECRET, "m1"), segment("recalled", "kept", "m2")
    both = segment("recalled", f"x {SECRET}", "m2", "m1")
    summary = segment("summary", f"The user said {SECRET}.")
    dropped = (Dropped(mine, "no room"),)
    segments = (summary, mine, other, both)
    trace = PromptTrace("why?", 20, 100, 10, segments, dropped, query=f"why? {SECRET}")
    plain = to_plain(trace)
    new = from_json(TRACE, to_json(scrubbed(plain, ("m1",), summaries=True)))
    assert SECRET not in repr(new)
    assert [s.tokens for s in new.segments] == [5, 5, 5, 5]
    assert new.segments[2] == other
    assert scrubbed(plain, ("m1",))["segments"][0] == to_plain(summary)


def test_what_a_later_line_corrected_is_forgotten_with_it() -> None:
    def turn(n: int, text: str) -> Turn:
        return Turn(
            f"t{n}", (Message(f"m{n}", "user", text),), (Message(f"a{n}", "assistant", "."),)
        )

    old, new = "We meet on 14 March.", "We meet on 21 March instead."
    turns = (turn(0, old), turn(1, new), turn(2, "Chairs are nice to sit on."))
    facts = (Fact(new, "t1", "m1", id="f1", earlier=old), Fact("x", "t0", "m0", id="f0"))
    chat = Conversation("c", turns=turns, summary=RollingSummary("S.", 3, 1, facts))
    summary = without_turn(
        chat, turns[0], older=None, cap_tokens=50, count_tokens=len, language="en"
    )
    assert summary is not None
    assert (summary.covers, summary.origin) == (2, "extractive")
    assert [(f.text, f.earlier) for f in summary.facts] == [(new, "")]
    assert "14" not in summary.text
    assert (
        without_turn(
            Conversation("c", turns=turns, summary=RollingSummary("S.", 1, 1)),
            turns[2],
            older=None,
            cap_tokens=50,
            count_tokens=len,
            language="en",
        )
        is None
    )
