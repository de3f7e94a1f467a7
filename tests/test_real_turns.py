"""Real turns with the demo model in a window of 640 tokens, with folds."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatbot.chat import Chat, TurnDone
from chatbot.engine.base import Engine
from chatbot.settings import Settings
from chatbot.store import Store

WINDOW_TOKENS = 640
TURNS = 15
SAID = (
    "My name is Ada and I live in Porto with two cats.",
    "I am planning a trip to Lisbon on 14 March with my brother Rui.",
    "What should I see in Lisbon in two days?",
    "Rui does not like museums. What else is there to do?",
    "How do I get from Porto to Lisbon by train?",
    "Our budget is 450 euros in all. Is that enough?",
    "Give me a short list of things to pack.",
    "It may rain. Should I change anything on that list?",
)


@pytest.mark.long
@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_turns_run_through_and_can_be_looked_at_later(
    demo_engine: Engine, tmp_path: Path
) -> None:
    settings = Settings(
        data_dir=tmp_path, window_tokens=WINDOW_TOKENS, reply_tokens=16, summary_tokens=80
    )
    store = Store(tmp_path / "chats.db")
    chat = Chat(settings=settings, store=store, engine=demo_engine)
    conversation_id = store.create_conversation().id
    for number in range(TURNS):
        question = f"{SAID[number % len(SAID)]} (message {number + 1})"
        *_, last = chat.reply(conversation_id, question)
        assert isinstance(last, TurnDone)
        assert last.turn.finish in ("stop", "length")
        assert chat.wait_for_folds(60)
    chat.close()

    conversation = store.load(conversation_id)
    assert len(conversation.turns) == TURNS
    assert len(store.summary_versions(conversation_id)) >= 2
    assert conversation.summary is not None
    assert 0 < conversation.summary.covers < TURNS
    for number, turn in enumerate(conversation.turns):
        trace = store.load_trace(turn.id)
        assert trace is not None and turn.usage is not None
        assert sum(s.tokens for s in trace.segments) == trace.prompt_tokens
        assert trace.prompt_tokens == turn.usage.prompt_tokens
        assert trace.prompt_tokens + trace.reply_tokens <= WINDOW_TOKENS
        assert trace.segments[0].kind == "system"
        assert trace.segments[-1].text.endswith(f"(message {number + 1})")
    store.close()
