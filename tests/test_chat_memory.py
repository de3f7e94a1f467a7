"""A chat when memory runs short: smaller prompts, a smaller window, replies that end early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chatbot.chat import Chat, ContextReady, NoticeEvent, TurnDone
from chatbot.engine.base import EngineInfo
from chatbot.engine.ladder import NO_SMALLER_PROMPT
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import OutOfMemoryError, SmallerPromptError
from chatbot.messages import Turn
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.pipeline import Library

ENGINES_STEPS = ("evict_idle", "int8_cache")
PAPER = " ".join(f"The keeper of lighthouse {n} has {n} lamps of oil." for n in range(60))


class ShortEngine(ScriptedEngine):
    """Has memory for so many tokens of prompt and reply."""

    def __init__(self, holds_tokens: int, **options: Any) -> None:
        super().__init__(self._answer, window_tokens=4096, **options)
        self.holds_tokens = holds_tokens
        self.shown_window = 4096

    @property
    def info(self) -> EngineInfo:
        short = self.shown_window < 4096
        return replace(
            super().info,
            max_window_tokens=self.shown_window,
            full_window_tokens=4096 if short else 0,
        )

    def _answer(self, text: str, ids: tuple[int, ...]) -> str:
        call = self.calls[-1]
        if len(ids) + call.params.max_tokens <= self.holds_tokens:
            return "Sixty lamps."
        taken = (*ENGINES_STEPS, *(s for s in call.ladder or () if s not in ENGINES_STEPS))
        if call.ladder is None or NO_SMALLER_PROMPT in call.ladder or "shorter_window" in taken:
            raise OutOfMemoryError("Memory ran out, and nothing helped.", taken)
        raise SmallerPromptError("Memory ran out.", taken)


class Rig:
    def __init__(self, folder: Path, engine: ShortEngine) -> None:
        settings = Settings(data_dir=folder, window_tokens=2048, reply_tokens=128, summary="off")
        self.store = Store(folder / "chats.db")
        self.engine = engine
        self.library = Library(
            folder / "library",
            embedder=None,
            count_tokens=lambda text: len(engine.tokenizer.encode(text)),
            chunk_min_tokens=40,
            chunk_max_tokens=80,
        )
        self.chat = Chat(settings=settings, store=self.store, engine=engine, library=self.library)
        self.id = self.store.create_conversation().id

    def attach(self, folder: Path) -> None:
        path = folder / "lighthouses.txt"
        path.write_text(PAPER, encoding="utf-8")
        report = self.library.ingest(path)
        assert report.document_id is not None
        self.store.set_documents(self.id, (report.document_id,))

    def ask(self, text: str) -> tuple[Turn, list[Any]]:
        events: list[Any] = list(self.chat.reply(self.id, text))
        assert isinstance(events[-1], TurnDone)
        return events[-1].turn, events

    def close(self) -> None:
        self.chat.close()
        self.library.close()
        self.store.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, ShortEngine(4096))
    yield made
    made.close()


def passages(turn: Turn) -> int:
    assert turn.trace is not None
    return sum(segment.kind == "passage" for segment in turn.trace.segments)


def test_fewer_passages_then_a_shorter_window(rig: Rig, tmp_path: Path) -> None:
    rig.attach(tmp_path)
    whole, _ = rig.ask("How many lamps has the keeper of lighthouse 17?")
    assert whole.trace is not None and passages(whole) > 3
    rig.engine.holds_tokens = whole.trace.prompt_tokens + 128 - 1
    fewer, events = rig.ask("How many lamps has the keeper of lighthouse 17?")
    assert fewer.finish == "stop" and fewer.reply == "Sixty lamps."
    assert 0 < passages(fewer) < passages(whole)
    told = [event.notice.code for event in events if isinstance(event, NoticeEvent)]
    assert "memory_fewer_passages" in told
    traces = [event.trace for event in events if isinstance(event, ContextReady)]
    assert len(traces) == 2 and traces[1].prompt_tokens < traces[0].prompt_tokens
    assert rig.engine.calls[-1].ladder == (*ENGINES_STEPS, "fewer_passages")
    assert fewer.trace is not None
    assert len(rig.engine.calls[-1].prompt_ids) == fewer.trace.prompt_tokens
    rig.engine.holds_tokens = 600
    shorter, _ = rig.ask("How many lamps has the keeper of lighthouse 18?")
    assert shorter.finish == "stop"
    assert rig.engine.calls[-1].ladder == (*ENGINES_STEPS, "fewer_passages", "shorter_window")


def test_without_passages_the_window_is_shortened_at_once(rig: Rig) -> None:
    for n in range(12):
        rig.ask(f"Tell me of the lighthouse {n}, " + "its keeper and its lamps of oil, " * 8)
    rig.engine.holds_tokens = 1100
    turn, events = rig.ask("Tell me more.")
    assert turn.finish == "stop"
    steps = [e.notice.code for e in events if isinstance(e, NoticeEvent)]
    assert steps.count("memory_shorter_window") == 1


def test_a_prompt_that_cannot_be_smaller_says_so_to_the_engine(rig: Rig) -> None:
    rig.engine.holds_tokens = 50
    turn, _ = rig.ask("Hello?")
    assert turn.finish == "memory" and turn.reply == ""
    assert turn.usage is not None
    assert turn.usage.ladder[:2] == ENGINES_STEPS
    assert turn.usage.memory is not None
    codes = [notice.code for notice in turn.notices]
    assert codes[-1] == "out_of_memory" and "memory_evict_idle" in codes
    assert f"memory_{NO_SMALLER_PROMPT}" not in codes
    stored = rig.store.load(rig.id).turns[-1]
    assert stored.finish == "memory" and stored.usage == turn.usage
    rig.engine.holds_tokens = 4096
    assert rig.ask("Hello again?")[0].finish == "stop"


def test_a_window_that_memory_has_cut_is_told_and_kept(rig: Rig) -> None:
    for n in range(12):
        rig.ask(f"Tell me of the lighthouse {n}, " + "its keeper and its lamps of oil, " * 8)
    rig.engine.shown_window = 512
    turn, events = rig.ask("And now?")
    assert turn.trace is not None
    assert turn.trace.prompt_tokens + turn.trace.reply_tokens <= 512
    assert "memory_window" in [e.notice.code for e in events if isinstance(e, NoticeEvent)]
    assert "512 tokens for now instead of 2048" in turn.notices[0].text
    rig.engine.shown_window = 3000  # still more than the setting asks for
    turn, _ = rig.ask("And then?")
    assert "memory_window" not in [notice.code for notice in turn.notices]
    assert turn.trace is not None and turn.trace.prompt_tokens > 512
