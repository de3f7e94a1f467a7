"""How often a chat is folded and the model asked, and what stays the same in between: 200 turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chatbot.chat import Chat, TurnDone
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.errors import EngineError
from chatbot.settings import Settings
from chatbot.store import Store

TURNS = 200
Answer = str | Exception | ScriptedReply
PLACES = ("attic", "cellar", "kitchen", "garden", "office", "garage", "hall", "porch")


@dataclass
class Log:
    """What happened in each turn of a chat."""

    calls: list[int] = field(default_factory=list)
    """Summary calls after each turn."""
    covers: list[int] = field(default_factory=list)
    """Turns that the summary stood for when each prompt was made."""
    prompts: list[tuple[int, ...]] = field(default_factory=list)
    fronts: list[int] = field(default_factory=list)
    """Tokens of each prompt up to the last of its past turns."""
    origins: set[str] = field(default_factory=set)

    @property
    def folds(self) -> int:
        return sum(a != b for a, b in zip(self.covers, self.covers[1:], strict=False))


def talk(folder: Path, summarise: Callable[[], Answer], turns: int = TURNS) -> Log:
    """A chat of ordinary short turns in the demo model's window."""
    log = Log()
    asked: list[str] = []

    def answer(prompt: str, ids: tuple[int, ...]) -> Answer:
        if "You write the memory of a chat" in prompt or "Write a summary of" in prompt:
            asked.append(prompt)
            return summarise()
        return "That sounds fine. The lamp can stand there, and the cable is long enough for it."

    engine = ScriptedEngine(answer, window_tokens=2048)
    settings = Settings(data_dir=folder, window_tokens=2048, embedding_model="none")
    store = Store(folder / "chats.db")
    chat = Chat(settings=settings, store=store, engine=engine)
    conversation_id = store.create_conversation().id
    for n in range(turns):
        place, other = PLACES[n % 8], PLACES[(n // 8) % 8]
        before = len(asked)
        text = f"Should lamp {n} go from the {place} to the {other}, or stay where it is for now?"
        *_, done = chat.reply(conversation_id, text)
        assert isinstance(done, TurnDone) and done.turn.trace is not None
        segments = done.turn.trace.segments
        log.prompts.append(next(c.prompt_ids for c in reversed(engine.calls) if c.conversation_id))
        log.fronts.append(
            sum(s.tokens for s in segments if s.kind in ("system", "summary", "turn"))
        )
        assert chat.wait_for_folds(20)
        log.calls.append(len(asked) - before)
        summary = store.load(conversation_id).summary
        log.covers.append(summary.covers if summary else 0)
        log.origins |= {summary.origin} if summary else set()
    chat.close()
    store.close()
    return log


def changed_fronts(log: Log) -> list[int]:
    """Turns whose prompt does not begin with the front of the prompt before, without a fold."""
    changed = []
    for n in range(1, len(log.prompts)):
        folded = log.covers[n - 1] != (log.covers[n - 2] if n > 1 else 0)
        front = log.prompts[n - 1][: log.fronts[n - 1]]
        if not folded and log.prompts[n][: len(front)] != front:
            changed.append(n)
    return changed


def good() -> Answer:
    return "The user asks where lamps should go, and the assistant finds each place fine."


def too_much() -> Answer:
    return ScriptedReply("The user asks where the lamps should go and then ", ends_itself=False)


def failure() -> Answer:
    return EngineError("It broke.")


@pytest.mark.slow
def test_good_summaries(tmp_path: Path) -> None:
    log = talk(tmp_path, good)
    assert 5 <= log.folds <= TURNS / 8
    assert max(log.calls) == 1
    assert sum(log.calls) == log.folds
    assert log.origins == {"model"}
    assert changed_fronts(log) == []


@pytest.mark.slow
@pytest.mark.parametrize("summarise", [failure, too_much], ids=["fails", "too_much"])
def test_bad_summaries_cost_a_call_a_turn_at_most_and_then_back_off(
    tmp_path: Path, summarise: Callable[[], Answer]
) -> None:
    log = talk(tmp_path, summarise)
    assert 5 <= log.folds <= TURNS / 8
    assert max(log.calls) == 1
    first, second = sum(log.calls[: TURNS // 2]), sum(log.calls[TURNS // 2 :])
    assert 0 < second <= first
    assert sum(log.calls) <= 2 * log.folds / 3
    assert log.origins == {"extractive"}
    assert changed_fronts(log) == []
