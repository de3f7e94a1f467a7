"""The API over a scripted engine: with the page around it, or alone, for the API's tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from chatbot.api.keys import FILE, Limits, add_key
from chatbot.engine.base import Engine
from chatbot.engine.scripted import Scripted, ScriptedEngine, ScriptedReply
from chatbot.errors import PromptTooLongError
from tests.browser.person import Site

FREE = Limits(0, 0, 0)
LONG = " ".join(f"word{n}" for n in range(60))


def script(prompt: str, _: tuple[int, ...]) -> Scripted:
    """Replies by what the last question asks for, or an echo of its length."""
    question = prompt.rsplit("wish:", 1)[-1][:12] if "wish:" in prompt else ""
    for name, reply in {
        "slow": ScriptedReply(LONG, tokens_per_s=40, ends_itself=False),
        "stall": ScriptedReply(LONG, stall_after_tokens=4),
        "long": ScriptedReply(LONG, ends_itself=False),
        "too long": PromptTooLongError("The server takes less than that."),
    }.items():
        if question.startswith(name):
            return reply
    if "lighthouse" in prompt:
        return "The lamp of the lighthouse is 16 metres high."
    return "안녕하세요. A plain reply 👍."


class Api(Site):
    """A running program with its API. `key` makes a key for a person."""

    def __init__(
        self, folder: Path, *, engine: Callable[[], Engine] | None = None, **settings: Any
    ) -> None:
        make = engine or (lambda: ScriptedEngine(script, window_tokens=2048))
        super().__init__(folder, engine=make, api=True, **settings)
        # Making one client takes longer than many requests: it reads all certificates.
        self.plain = httpx.Client(
            base_url=self.base_url, trust_env=False, verify=False, timeout=30.0
        )

    @property
    def base_url(self) -> str:
        return f"{self.url}v1"

    def close(self) -> None:
        self.plain.close()
        super().close()

    def key(self, name: str, user: str = "", limits: Limits = FREE) -> str:
        path = self.settings.data_dir / FILE
        return add_key(path, name, user=user, limits=limits, created="")


def until(check: Callable[[], bool], what: str, limit_s: float = 20.0) -> None:
    """Wait for something that happens elsewhere."""
    end = time.monotonic() + limit_s
    while not check():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.02)
