"""The server of `api_load`: the whole program over a scripted engine, in a process of its own."""

from __future__ import annotations

from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

from chatbot.api.keys import FILE, Limits, add_key
from chatbot.engine.scripted import ScriptedCall, ScriptedEngine, ScriptedReply
from chatbot.services import build_services
from chatbot.settings import Settings

REPLY = (
    "Noted. Mina lives in Busan since 3 May, the meeting is on Tuesday at three, and the budget "
    "of 4,300 euros holds. Is there anything else that I should keep in mind for the trip?"
)
WINDOW_TOKENS = 2048
AT_ONCE = 64


class _NoRecord(list[ScriptedCall]):
    """The engine's record of its calls, which must not fill the memory."""

    def append(self, call: ScriptedCall) -> None:
        """Keep nothing."""


def serve(theirs: Connection, folder: Path, users: int, tokens_per_s: float) -> None:
    """Serve until told to end. Sends the address and the users' keys first."""
    engine = ScriptedEngine(
        lambda prompt, ids: ScriptedReply(REPLY),
        window_tokens=WINDOW_TOKENS,
        tokens_per_s=tokens_per_s or None,
        at_once=AT_ONCE,
    )
    engine.calls = _NoRecord()
    settings = Settings(
        data_dir=folder,
        port=0,
        embedding_model="none",
        api=True,
        max_concurrent_replies=AT_ONCE,
    )
    names = [f"user{n:03d}" for n in range(users)]
    keys = [
        add_key(folder / FILE, name, user=name, limits=Limits(600, 1_000_000, 8), created="")
        for name in names
    ]
    from chatbot.ui.server import launch

    with (
        closing(build_services(settings, engine=engine)) as services,
        closing(launch(services)) as handle,
    ):
        theirs.send({"url": handle.url, "keys": keys})
        theirs.recv()
