"""Engines at servers that tests start, and what tests ask of them."""

from __future__ import annotations

from chatbot.engine.base import ChatTokenizer, Engine
from chatbot.engine.chat_format import assemble_ids
from chatbot.engine.remote import RemoteEngine, connect
from chatbot.settings import Settings


class Quiet:
    """Takes reports and tells nobody."""

    def __call__(self, message: str, progress: float | None = None) -> None: ...

    def offer_tokenizer(self, tokenizer: ChatTokenizer) -> None: ...


def remote_engine(url: str, **settings: object) -> RemoteEngine:
    """An engine at a server."""
    return connect(Settings(engine_url=url, **settings), Quiet())  # type: ignore[arg-type]


def prompt_of(engine: Engine, question: str, system: str = "Be kind.") -> tuple[int, ...]:
    """One question as a prompt for this engine."""
    tokenizer = engine.tokenizer
    return assemble_ids(
        tokenizer.chat_format, tokenizer.encode(system), [], tokenizer.encode(question)
    )
