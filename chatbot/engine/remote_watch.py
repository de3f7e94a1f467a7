"""Whether a server is there at this moment: what replies have shown, else a short look at it.

Knows no prompt and no reply.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from threading import Lock

import openai

from chatbot.engine.base import EngineEvent, Finished
from chatbot.engine.reach import Reach
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.remote_deadline import OverdueError, within
from chatbot.errors import (
    NoAnswerError,
    RemoteError,
    ServerBusyError,
    UnknownModelError,
    WrongKeyError,
)

FRESH_S = 5.0
"""So long is believed what is known; probes of proxies and Prometheus come about as often."""
LOOK_S = 2.0
"""The longest look, all in all."""


@dataclass(frozen=True, slots=True)
class _Known:
    state: Reach
    at_s: float


class ServerWatch:
    """Of one server and its model. Safe to use from threads."""

    def __init__(
        self, client: RemoteClient, model: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """The server must just have answered."""
        self._client = client
        self._model = model
        self._clock = clock
        self._known = _Known("ok", clock())
        self._looking = Lock()

    def reach(self) -> Reach:
        """See `Distant.reach`. Who comes while another one looks gets what was known before."""
        if self._clock() - self._known.at_s < FRESH_S or not self._looking.acquire(blocking=False):
            return self._known.state
        try:
            began_s = self._clock()
            state = self._look()
            if self._known.at_s < began_s:  # else a reply has shown it meanwhile
                self._known = _Known(state, self._clock())
        finally:
            self._looking.release()
        return self._known.state

    def following(self, events: Generator[EngineEvent]) -> Generator[EngineEvent]:
        """The events of a reply, of which each shows that the server is there, and their error
        that it may not be."""
        try:
            with closing(events):
                for event in events:
                    # A reply that is stopped early has asked nobody.
                    if not isinstance(event, Finished) or event.finish != "cancelled":
                        self._known = _Known("ok", self._clock())
                    yield event
        except RemoteError as error:
            self._failed(error)
            raise

    def _failed(self, error: RemoteError) -> None:
        if isinstance(error, NoAnswerError):
            self._known = _Known("unreachable", self._clock())
        elif isinstance(error, WrongKeyError | UnknownModelError):
            self._known = _Known("refused", self._clock())
        else:  # there or not: that shows when it is asked next
            self._known = _Known(self._known.state, -math.inf)

    def _look(self) -> Reach:
        try:
            models = within(LOOK_S, lambda: self._client.models(silence_s=LOOK_S))
        except (OverdueError, NoAnswerError):
            return "unreachable"
        except ServerBusyError as error:
            return "ok" if _is_only_busy(error) else "unreachable"
        except RemoteError:
            return "refused"
        names = [model["id"] for model in models]
        # Some servers list none, or only what they have loaded.
        return "ok" if not names or self._model in names else "refused"


def _is_only_busy(error: ServerBusyError) -> bool:
    """Whether it wants fewer questions, rather than having a fault."""
    cause = error.__cause__
    return isinstance(cause, openai.APIStatusError) and cause.status_code < 500
