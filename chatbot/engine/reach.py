"""Whether an engine could make a reply at this moment, its server included. Knows no server."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from chatbot.engine.base import Engine

Reach = Literal["ok", "unreachable", "refused"]
"""A server does not answer; or it does, but not for us: it refuses the key or has no such model."""


@runtime_checkable
class Distant(Protocol):
    """An engine whose model may be on another machine."""

    def reach(self) -> Reach:
        """What is known of the server, which is asked if that is old. Takes 2 seconds at most;
        not for an event loop."""
        ...


def reach_of(engine: Engine) -> Reach:
    """See `Distant.reach`; "ok" for an engine that needs nobody else."""
    return engine.reach() if isinstance(engine, Distant) else "ok"


def state_now(engine: Engine) -> Literal["ok", "loading", "failed", "unreachable", "refused"]:
    """ "ok" when a question would be answered now, else what is the matter. Takes as long as
    `Distant.reach`."""
    state = engine.status.state
    return reach_of(engine) if state == "ready" else state
