"""Turns, summaries and long chats for tests of the store."""

from __future__ import annotations

import dataclasses

from chatbot.messages import (
    Conversation,
    Dropped,
    Fact,
    Message,
    Notice,
    PromptTrace,
    RollingSummary,
    Segment,
    Turn,
    Usage,
)
from chatbot.store import Store
from retrieval.types import Citation

CITATION = Citation("1", "법령.txt", "doc", 3, 10, 14, "제1조항", page_end=4)
SEGMENT = Segment(
    "passage", 7, "제1조\n\t<|eot_id|>", ("m1",), "a.pdf", "doc", 1, 2, 3, 9, "1", 0.5
)
TRACE = PromptTrace(
    "질문?", 7, 100, 20, (SEGMENT,), (Dropped(SEGMENT, "no room"),), 3, "질문", (Notice("a", "b"),)
)


def answered(turn: Turn, text: str, *, trace: PromptTrace | None = None) -> Turn:
    reply = (Message(f"{turn.id}-reply", "assistant", text),)
    return dataclasses.replace(turn, assistant=reply, finish="stop", trace=trace)


def say(store: Store, conversation_id: str, *texts: str) -> list[Turn]:
    turns = [store.begin_turn(conversation_id, text) for text in texts]
    for turn in turns:
        store.finish_turn(conversation_id, answered(turn, f"re: {turn.question}"))
    return turns


def long_chat(n_turns: int, *, chat_id: str = "long") -> Conversation:
    question, reply = "오늘 날씨가 어때요? " * 20, "It rains. " * 80
    trace = dataclasses.replace(TRACE, segments=(dataclasses.replace(SEGMENT, text="가" * 2000),))
    turns = tuple(
        Turn(
            f"{chat_id}-{n}",
            (Message(f"u{n}", "user", question, created="2024-01-01"),),
            (Message(f"a{n}", "assistant", reply),),
            reply_token_ids=tuple(range(200)),
            usage=Usage(1, 2, 3, 0.5, 0.25),
            trace=trace,
        )
        for n in range(n_turns)
    )
    return Conversation(chat_id, "Long", turns)


def summary(covers: int, text: str) -> RollingSummary:
    return RollingSummary(
        text, covers, 5, (Fact("1층", "t", "m", True, id="f1"),), "edited", "2025"
    )
