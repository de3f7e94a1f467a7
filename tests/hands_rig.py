"""A chat over a scripted engine that folds early, and what a test wants to see of it."""

from __future__ import annotations

import threading
from pathlib import Path

from chatbot.chat import Chat, TurnDone
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.messages import Conversation, Fact, RollingSummary, Turn
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.pipeline import Library

REPLY = "That is noted, and nothing else changes for now."
SUMMARY = "The user assigns numbered chairs to rooms, and the assistant takes note of it."


class Rig:
    """Folds with one sentence that holds no detail, so that details come from elsewhere."""

    def __init__(self, folder: Path, *, with_library: bool = False, **options: object) -> None:
        self.summary_prompts: list[str] = []
        self.chat_prompts: list[str] = []
        self.pause: ScriptedReply | None = None
        self.summary_pause: ScriptedReply | None = None
        self.engine = ScriptedEngine(self._answer, window_tokens=4096)
        values = {"window_tokens": 512, "reply_tokens": 64, "summary_tokens": 120} | options
        settings = Settings(data_dir=folder, **values)  # type: ignore[arg-type]
        self.path = folder / "chats.db"
        self.store = Store(self.path)
        self.library = None
        if with_library:
            self.library = Library(
                folder / "library",
                embedder=None,
                count_tokens=lambda text: len(self.engine.tokenizer.encode(text)),
            )
        self.chat = Chat(
            settings=settings, store=self.store, engine=self.engine, library=self.library
        )
        self.id = self.store.create_conversation().id

    def _answer(self, prompt: str, ids: tuple[int, ...]) -> str | ScriptedReply:
        if "You write the memory of a chat" in prompt or "Write a summary of" in prompt:
            self.summary_prompts.append(prompt)
            return self.summary_pause or SUMMARY
        self.chat_prompts.append(prompt)
        return self.pause or REPLY

    def ask(self, text: str, conversation_id: str | None = None) -> Turn:
        *_, last = self.chat.reply(conversation_id or self.id, text)
        assert isinstance(last, TurnDone)
        assert self.chat.wait_for_folds(20)
        return last.turn

    def edit(self, turn_id: str, text: str) -> Turn:
        *_, last = self.chat.edit(self.id, turn_id, text)
        assert isinstance(last, TurnDone)
        assert self.chat.wait_for_folds(20)
        return last.turn

    def talk(self, turns: int, start: int = 0) -> list[Turn]:
        return [
            self.ask(f"Item {n}: the chair number {100 + n} goes to room {n}.")
            for n in range(start, start + turns)
        ]

    def answering(self) -> threading.Event:
        """Begin a reply that does not end before `stop`; returns when it runs."""
        self.pause = ScriptedReply("one two three four", stall_after_tokens=1)
        begun = threading.Event()

        def run() -> None:
            for _ in self.chat.reply(self.id, "A long one?"):
                begun.set()

        self.thread = threading.Thread(target=run)
        self.thread.start()
        assert begun.wait(20)
        return begun

    def end(self) -> None:
        self.pause = None
        self.chat.stop(self.id)
        self.thread.join(20)
        assert self.chat.wait_for_folds(20)

    @property
    def now(self) -> Conversation:
        return self.store.load(self.id)

    @property
    def summary(self) -> RollingSummary:
        found = self.now.summary
        assert found is not None
        return found

    def fact(self, part: str) -> Fact:
        return next(fact for fact in self.summary.facts if part in fact.text)

    def prompt(self, question: str = "And now?") -> str:
        """The text of the prompt that a question would make."""
        trace = self.chat.context(self.id, question)
        return "\n".join(segment.text for segment in trace.segments)

    def close(self) -> None:
        self.chat.close()
        if self.library is not None:
            self.library.close()
        self.store.close()
