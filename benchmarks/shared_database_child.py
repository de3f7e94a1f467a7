"""One app process of `benchmarks.shared_database`: answers what it is asked, a line of JSON each.

Has no page: a `Chat` over the scripted engine on the shared database, as a replica has it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from chatbot.chat import Chat, ChatEvent, TurnDone
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.errors import ChatbotError
from chatbot.settings import Settings
from chatbot.store import Store

AT_ONCE = 12
LOOKED_AT = 10
"""Turns among which a user looks for a question whose answer never came."""
WINDOW_TOKENS = 1024
TOKENS_PER_S = 400.0
"""Slow enough that replies of both processes overlap and one is cut off by the kill."""


class App:
    """Answers requests in threads, each with one line."""

    def __init__(self, url: str, lease_s: float, folder: Path) -> None:
        settings = Settings(
            data_dir=folder,
            window_tokens=WINDOW_TOKENS,
            reply_tokens=64,
            summary="extractive",
            max_concurrent_replies=AT_ONCE,
        )
        self.engine = ScriptedEngine(_answer, window_tokens=WINDOW_TOKENS)
        self.store = Store(url, lease_s=lease_s)
        self.chat = Chat(settings=settings, store=self.store, engine=self.engine)
        self._printing = threading.Lock()

    def handle(self, line: str) -> None:
        asked = json.loads(line)
        try:
            answer = {"finish": self._finish(**asked["ask"])}
        except ChatbotError as error:
            answer = {"refused": str(error)}
        except Exception as error:  # Shown as a fault by whoever asked.
            answer = {"fault": repr(error)}
        with self._printing:
            print(json.dumps({"number": asked["number"], **answer}), flush=True)

    def _finish(self, conversation: str, question: str, is_again: bool) -> str:
        """How the turn ended. `is_again`: it may be there already, whole or cut off."""
        newest = self.store.last_turns(conversation, LOOKED_AT) if is_again else ()
        mine = [turn for turn in newest if turn.question == question]
        if any(turn.finish == "stop" for turn in mine):
            return "stop"
        if mine and mine[-1] is newest[-1]:
            return _run(self.chat.retry(conversation))
        return _run(self.chat.reply(conversation, question))

    def close(self) -> None:
        self.chat.wait_for_folds(60)
        self.chat.close()
        self.store.close()


def _run(events: Iterator[ChatEvent]) -> str:
    return [event.turn.finish for event in events if isinstance(event, TurnDone)][-1]


def _answer(prompt: str, ids: object) -> ScriptedReply:
    # The question is the last line of the prompt that names one.
    named = [line for line in prompt.splitlines() if "question number" in line]
    words = named[-1].partition("question number")[2].split("<")[0].strip(" .?")
    text = f"The answer to number {words} is long enough to be cut off."
    return ScriptedReply(text, tokens_per_s=TOKENS_PER_S)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--lease-s", type=float, default=5.0)
    arguments: Any = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        app = App(arguments.url, arguments.lease_s, Path(folder))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for line in sys.stdin:
                pool.submit(app.handle, line)
        app.close()


if __name__ == "__main__":
    main()
