"""A question that is refused has changed nothing; one that is taken brings all its changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hands_rig import Rig

from chatbot.chat_events import TurnDone
from chatbot.errors import BudgetError, ChatbotError, IdTakenError, InputError, StoreError
from chatbot.messages import Conversation, Message, Turn
from chatbot.store_changes import Changes

HUGE = "word " * 3000
LONG = "\n".join(f"Line {n} of the report says that valve {n} is shut." for n in range(60))
SHORT = ["three", "세 번째는 뭐예요?", "What do you know of the old mill in the north? " * 4]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, with_library=True)
    yield made
    made.close()


def documents(rig: Rig) -> list[str]:
    assert rig.library is not None
    return [info.name for info in rig.library.documents()]


def asked(rig: Rig, text: str, changes: Changes, conversation_id: str = "") -> Turn:
    *_, last = rig.chat.reply(conversation_id or rig.id, text, changes=changes)
    assert isinstance(last, TurnDone)
    return last.turn


@pytest.mark.parametrize("text", SHORT)
@pytest.mark.parametrize("too_many", [1, 9, 3000])
def test_a_short_question_beside_a_long_system_text_becomes_no_document(
    rig: Rig, text: str, too_many: int
) -> None:
    """Also where some tokens are left for it, but too few."""
    rig.ask("one")
    encoder, budget = rig.chat.builder.encoder, rig.chat.budget()
    required = (encoder.system("").segment, encoder.question(text).segment)
    room = budget.limit_tokens - sum(segment.tokens for segment in required)
    rig.store.set_system_text(rig.id, "word " * (room + too_many))
    before = rig.now
    with pytest.raises(BudgetError, match=f" {too_many} too many"):
        rig.ask(text)
    assert rig.now == before and documents(rig) == []
    rig.store.set_system_text(rig.id, "")
    assert "numbered passages" not in rig.prompt("And now?")


def test_a_long_message_beside_a_long_system_text_is_refused_or_attached(rig: Rig) -> None:
    rig.store.set_system_text(rig.id, HUGE)
    before = rig.now
    with pytest.raises(BudgetError):
        rig.ask(LONG)
    assert rig.now == before and documents(rig) == []
    rig.store.set_system_text(rig.id, "word " * 200)
    assert "question_attached" in [n.code for n in rig.ask(LONG).notices]
    assert len(documents(rig)) == len(rig.now.document_ids) == 1


def test_what_a_refused_question_was_to_change_stays_as_it_was(rig: Rig) -> None:
    first = rig.ask("one")
    before = rig.now
    with pytest.raises(BudgetError):
        asked(rig, "two", Changes(system_text=HUGE, document_ids=("some",)))
    with pytest.raises(InputError):
        asked(rig, "  ", Changes(system_text="Be brief."))
    with pytest.raises(BudgetError):
        list(rig.chat.retry(rig.id, changes=Changes(system_text=HUGE)))
    with pytest.raises(InputError, match="being changed elsewhere"):
        asked(rig, "two", Changes(new=Conversation(rig.id)))
    assert rig.now == before and rig.now.turns[0].id == first.id
    with pytest.raises(BudgetError):
        asked(rig, "two", Changes(new=Conversation("new-one", system_text=HUGE)), "new-one")
    with pytest.raises(IdTakenError):
        rig.store.create_conversation(conversation_id=rig.id)
    assert [info.id for info in rig.store.list_conversations()] == [rig.id]


def test_a_refusal_while_another_reply_runs_changes_nothing(rig: Rig) -> None:
    rig.ask("one")
    rig.answering()
    before = rig.now
    with pytest.raises(InputError, match="being answered"):
        asked(rig, LONG, Changes(system_text="Be brief.", document_ids=("some",)))
    assert rig.now == before and documents(rig) == []
    rig.end()


@pytest.mark.parametrize("error", [InputError("Elsewhere."), StoreError("The database is away.")])
def test_a_message_that_could_not_be_stored_is_no_document(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: ChatbotError
) -> None:
    def refuse(*_: object, **__: object) -> Turn:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "begin_turn", refuse)
        with pytest.raises(type(error)):
            rig.ask(LONG)
    assert documents(rig) == [] and rig.now.document_ids == ()
    rig.ask(LONG)
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "begin_turn", refuse)
        with pytest.raises(type(error)):
            rig.ask(LONG, rig.store.create_conversation().id)
    assert len(documents(rig)) == 1, "the document of the chat that asked before is gone"


def test_what_changes_with_a_question_is_stored_with_it(rig: Rig) -> None:
    turn = asked(rig, LONG, Changes(system_text=" Be brief. ", document_ids=("some",)))
    assert rig.now.system_text == "Be brief." and rig.now.turns[-1].id == turn.id
    assert rig.now.document_ids[0] == "some" and len(rig.now.document_ids) == 2
    said = Turn("t", (Message("m", "user", "Hi."),), (Message("n", "assistant", "Hello."),))
    new = Conversation("new-one", turns=(said,), system_text="Be kind.")
    asked(rig, "two", Changes(new=new), new.id)
    stored = rig.store.load(new.id)
    assert [turn.question for turn in stored.turns] == ["Hi.", "two"]
    assert stored.title == "Hi." and stored.system_text == "Be kind."
    assert "Be kind." in rig.chat_prompts[-1] and "Hello." in rig.chat_prompts[-1]


def test_a_message_that_a_longer_reply_leaves_no_room_for_is_attached(rig: Rig) -> None:
    lines = LONG.splitlines()
    fits = [
        n
        for n in range(60)
        if rig.chat.builder.fits(rig.now, "\n".join(lines[:n]), rig.chat.budget())
    ]
    text = "\n".join(lines[: fits[-1]])
    *_, last = rig.chat.reply(rig.id, text, max_tokens=256)
    assert isinstance(last, TurnDone)
    codes = {notice.code for notice in last.turn.notices}
    assert codes >= {"question_shortened", "question_attached"}
