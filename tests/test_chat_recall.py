"""Recall within a running chat: vectors made after replies, restarts, forgotten turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from chatbot.chat import Chat, TurnDone
from chatbot.engine.scripted import ScriptedEngine
from chatbot.messages import PromptTrace, Turn
from chatbot.recall import RecallIndex
from chatbot.recall_vectors import RecallVectors
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.embed import ScriptedEmbedder

WORDS = ("lamp", "train", "bread", "tower", "piano", "boat", "cloud", "shirt", "stone", "glass")


class Rig:
    """A chat with a small window, so that it folds after some turns."""

    def __init__(self, folder: Path) -> None:
        self.embedder = ScriptedEmbedder()
        self.store = Store(folder / "chats.db")
        self.vectors = RecallVectors(self.embedder, folder / "recall.db")
        self.chat = Chat(
            settings=Settings(data_dir=folder, window_tokens=1024, summary="extractive"),
            store=self.store,
            engine=ScriptedEngine(lambda text, ids: "All right, noted.", window_tokens=4096),
            vectors=self.vectors,
        )

    def ask(self, conversation_id: str, text: str) -> Turn:
        *_, last = self.chat.reply(conversation_id, text)
        assert isinstance(last, TurnDone)
        return last.turn

    def close(self) -> None:
        self.chat.close()
        self.store.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.close()


def talk(rig: Rig) -> tuple[str, Turn]:
    """A chat that has folded its first turns; the second holds what is looked for later."""
    conversation_id = rig.store.create_conversation().id
    rig.ask(conversation_id, "Let us begin.")
    told = rig.ask(conversation_id, "The boiler was serviced by Quentin.")
    for n in range(20):
        said = " ".join(f"{word}{n}" for word in WORDS)
        rig.ask(conversation_id, f"I like the {said} and nothing else in the world.")
    assert rig.chat.wait_for_folds(30)
    summary = rig.store.load(conversation_id).summary
    assert summary is not None and summary.covers > 2
    return conversation_id, told


def recalled(trace: PromptTrace) -> set[str]:
    return {i for s in trace.segments if s.kind == "recalled" for i in s.message_ids}


def test_turns_get_vectors_after_a_reply_once_some_are_folded(rig: Rig) -> None:
    conversation_id = rig.store.create_conversation().id
    rig.ask(conversation_id, "Let us begin.")
    assert rig.chat.wait_for_folds(30)
    assert rig.embedder.embedded == []
    conversation_id, _ = talk(rig)
    assert "The boiler was serviced by Quentin." in rig.embedder.embedded
    assert len(rig.embedder.embedded) == len(set(rig.embedder.embedded))


def test_a_restart_gives_the_same_next_prompt_with_vectors(rig: Rig, tmp_path: Path) -> None:
    conversation_id, told = talk(rig)
    before = rig.chat.context(conversation_id, "What did I say about the boiler?")
    assert told.user[0].id in recalled(before)
    rig.close()
    again = Rig(tmp_path)
    try:
        assert again.chat.context(conversation_id, "What did I say about the boiler?") == before
        assert again.embedder.embedded == []
    finally:
        again.close()


def test_a_forgotten_turn_is_gone_from_recall_and_its_vectors(rig: Rig) -> None:
    conversation_id, told = talk(rig)
    kept = len(rig.vectors.known(conversation_id))
    rig.chat.forget_turn(conversation_id, told.id)
    assert len(rig.vectors.known(conversation_id)) < kept
    trace = rig.chat.context(conversation_id, "What did I say about the boiler and Quentin?")
    assert not any("boiler was" in s.text for s in trace.segments)


def test_a_deleted_chat_keeps_no_vectors(rig: Rig) -> None:
    conversation_id, _ = talk(rig)
    assert rig.vectors.known(conversation_id)
    rig.chat.delete(conversation_id)
    assert not rig.vectors.known(conversation_id)


def test_in_plain_talk_only_the_new_message_is_read(rig: Rig) -> None:
    conversation_id, _ = talk(rig)
    trace = rig.chat.context(conversation_id, "I like the lamp3 and the train4 best, by far.")
    assert recalled(trace) == set()
    assert trace.segments[-1].text == "I like the lamp3 and the train4 best, by far."


def test_a_chat_that_is_opened_is_read_before_its_first_question(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id, _ = talk(rig)
    rig.chat.close()
    read: list[int] = []
    whole = RecallIndex._excerpts_of

    def counted(self: RecallIndex, turns: Sequence[Turn], start: int) -> Any:
        read.append(len(turns))
        return whole(self, turns, start)

    monkeypatch.setattr(RecallIndex, "_excerpts_of", counted)
    rig.chat = Chat(
        settings=Settings(data_dir=tmp_path, window_tokens=1024, summary="extractive"),
        store=rig.store,
        engine=ScriptedEngine(lambda text, ids: "All right, noted.", window_tokens=4096),
        vectors=RecallVectors(rig.embedder, tmp_path / "recall.db"),
    )
    rig.chat.read_ahead(conversation_id)
    rig.chat._ahead.wait()
    assert sum(read) == 22
    rig.chat.read_ahead(conversation_id)  # once is enough
    rig.chat.context(conversation_id, "Who serviced the boiler?")
    assert sum(read) == 22
    rig.chat.read_ahead("unknown")  # is no fault
    rig.chat._ahead.wait()
