"""POST /v1/chat/completions: one reply, whole or as a stream. Knows no conversation's inside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chatbot.api.errors import ApiError, api_error, turn_error
from chatbot.api.results import (
    ALIVE,
    DONE,
    Begun,
    Clock,
    Head,
    as_json,
    event,
    finish_reason,
    own_record,
    usage_record,
)
from chatbot.api.running import Event
from chatbot.chat_events import ContextReady, Queued, TurnDone
from chatbot.engine.base import TextDelta
from chatbot.errors import ChatbotError
from chatbot.messages import Turn
from retrieval.types import RetrievalError

T = TypeVar("T")
JSON = "application/json"
Events = AsyncGenerator[Event | None, None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a reply is to be answered. `leave` gives back what the request held, at its end."""

    head: Head
    clock: Clock
    leave: ExitStack
    wants_trace: bool
    wants_usage: bool = False


async def whole(events: Events, wanted: Wanted, receive: Receive) -> Response:
    """The answer that is not streamed. Raises ApiError. Ends the reply when the client goes."""
    with wanted.leave:
        async with aclosing(events):
            found = await while_there(_collected(events, wanted), receive)
    if found is None:
        return Response(status_code=499)  # nobody is there to read it
    turn, begun = found
    error = turn_error(turn)
    if error is not None:
        raise error
    head = replace(wanted.head, id=f"chatcmpl-{turn.id}")
    own = own_record(turn, begun, wanted.clock, wants_trace=wanted.wants_trace)
    return Response(as_json(head.whole(turn, own)), headers=_headers(begun), media_type=JSON)


async def streamed(events: Events, wanted: Wanted, receive: Receive) -> Response:
    """The answer as a stream; what fails before the model begins is an ApiError instead."""
    try:
        begun = await while_there(_begun(events, wanted), receive)
    except BaseException:
        with wanted.leave:
            await events.aclose()
        raise
    if begun is None:
        with wanted.leave:
            await events.aclose()
        return Response(status_code=499)
    return EventStream(_Stream(events, wanted, begun))


async def while_there(work: Awaitable[T], receive: Receive) -> T | None:
    """The result of `work`, or None as soon as the client has gone, with `work` cancelled."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait((working, leaving))


class EventStream(Response):
    """Sends a stream of events, and ends it when the client goes."""

    media_type = "text/event-stream"

    def __init__(self, stream: _Stream) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(headers={**headers, **_headers(stream.begun)})
        # Its length is not known.
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def body() -> None:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            async with aclosing(self._stream.pieces()) as pieces:
                async for piece in pieces:
                    message = {"type": "http.response.body", "body": piece, "more_body": True}
                    await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        try:
            await while_there(body(), receive)
        finally:
            await self._stream.close()


class _Stream:
    """The chunks of one reply."""

    def __init__(self, events: Events, wanted: Wanted, begun: Begun) -> None:
        self.begun = begun
        self._events = events
        self._wanted = wanted

    async def close(self) -> None:
        """The reply ends, and what the request held is free again."""
        with self._wanted.leave:
            await self._events.aclose()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """What is sent. An error in the middle is an event of its own, as OpenAI has it."""
        wanted = self._wanted
        more: dict[str, Any] = {"usage": None} if wanted.wants_usage else {}
        yield event(wanted.head.chunk({"role": "assistant", "content": ""}, **more))
        try:
            async for one in self._events:
                if one is None or isinstance(one, Queued):
                    yield ALIVE
                _timed(wanted.clock, one)
                if isinstance(one, TextDelta):
                    yield event(wanted.head.chunk({"content": one.text}, **more))
                if isinstance(one, TurnDone):
                    yield self._last(one.turn, more)
        except (ApiError, ChatbotError, RetrievalError) as error:
            known = error if isinstance(error, ApiError) else api_error(error)
            yield event(known.record)

    def _last(self, turn: Turn, more: dict[str, Any]) -> bytes:
        wanted = self._wanted
        error = turn_error(turn)
        if error is not None:
            return event(error.record)
        own = own_record(turn, self.begun, wanted.clock, wants_trace=wanted.wants_trace)
        if not wanted.wants_usage:
            return event(wanted.head.chunk({}, finish_reason(turn), chatbot=own)) + DONE
        usage = usage_record(turn.usage)
        last = wanted.head.record("chat.completion.chunk", [], usage=usage, chatbot=own)
        return event(wanted.head.chunk({}, finish_reason(turn), **more)) + event(last) + DONE


async def _begun(events: Events, wanted: Wanted) -> Begun:
    """Wait until the reply has its place in line: nothing of what was sent is wrong then."""
    begun = Begun()
    async for one in events:
        begun = one if isinstance(one, Begun) else begun
        _timed(wanted.clock, one)
        if isinstance(one, Queued | ContextReady | TextDelta):
            break
    return begun


async def _collected(events: Events, wanted: Wanted) -> tuple[Turn, Begun]:
    begun, turn = Begun(), None
    async for one in events:
        begun = one if isinstance(one, Begun) else begun
        turn = one.turn if isinstance(one, TurnDone) else turn
        _timed(wanted.clock, one)
    if turn is None:
        raise ApiError(503, "The server is being ended; ask again.", code="server_closing")
    return turn, begun


def _timed(clock: Clock, one: Event | None) -> None:
    if isinstance(one, Queued):
        clock.queued()
    elif isinstance(one, ContextReady):
        clock.at_the_engine()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(begun: Begun) -> dict[str, str]:
    named = begun.conversation_id
    return {"X-Conversation-Id": named} if named else {}
