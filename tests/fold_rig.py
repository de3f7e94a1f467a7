"""A chat that folds: its engine answers questions at once, and summaries as a test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from chatbot.chat import Chat, TurnDone
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.messages import Turn
from chatbot.settings import Settings
from chatbot.store import Store

WINDOW_TOKENS = 512
SUMMARY_PROMPTS = (
    "You write the memory of a chat",
    "Write a summary of",
    "당신은 대화를 기록합니다",
)
Answer = Callable[[str], str | Exception | ScriptedReply]


class Rig:
    """A chat whose engine answers questions at once and summaries as a test says."""

    def __init__(self, folder: Path, summarise: Answer, **options: object) -> None:
        self.summary_prompts: list[str] = []
        self.chat_prompts: list[str] = []
        self.summarise = summarise
        self.engine = ScriptedEngine(self.answer, window_tokens=4096)
        values = {
            "window_tokens": WINDOW_TOKENS,
            "reply_tokens": 64,
            "summary_tokens": 80,
        } | options
        settings = Settings(data_dir=folder, **values)  # type: ignore[arg-type]
        self.store = Store(folder / "chats.db")
        self.chat = Chat(settings=settings, store=self.store, engine=self.engine)
        self.id = self.store.create_conversation().id

    def answer(self, prompt: str, ids: tuple[int, ...]) -> str | Exception | ScriptedReply:
        if any(beginning in prompt for beginning in SUMMARY_PROMPTS):
            self.summary_prompts.append(prompt)
            return self.summarise(prompt)
        self.chat_prompts.append(prompt)
        return "That is noted, and nothing else changes for now."

    def ask(self, text: str) -> Turn:
        *_, last = self.chat.reply(self.id, text)
        assert isinstance(last, TurnDone)
        assert self.chat.wait_for_folds(20)
        return last.turn

    def talk(self, turns: int, start: int = 0) -> list[Turn]:
        return [
            self.ask(f"Item {n}: the chair number {100 + n} goes to room {n}.")
            for n in range(start, start + turns)
        ]

    def close(self) -> None:
        self.chat.close()
        self.store.close()
