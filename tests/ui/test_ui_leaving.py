"""When a tab counts as closed: it went while it listened to the queue."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.types import Message

from chatbot.ui import desk as desks
from chatbot.ui.desk import Desk, Tab
from chatbot.ui.leaving import watched

GONE: Message = {"type": "http.disconnect"}


def body(message: dict[str, str], *, more: bool = True) -> Message:
    data = f"data: {json.dumps(message, separators=(',', ':'))}\n\n".encode()
    return {"type": "http.response.body", "body": data, "more_body": more}


TEXT = body({"msg": "process_generating", "output": '"msg":"close_stream"'})
LAST = body({"msg": "close_stream"})


@pytest.mark.parametrize(
    ("told", "count"),
    [([], 1), ([TEXT], 1), ([TEXT, LAST], 0), ([body({"msg": "x"}, more=False)], 0)],
    ids=["nothing", "a text with the words", "the last message", "an answer that is complete"],
)
def test_a_tab_has_left_that_goes_before_the_end_of_its_stream(
    told: list[Message], count: int
) -> None:
    left: list[bool] = []
    passed: list[Message] = []

    async def receive() -> Message:
        return GONE

    async def send(message: Message) -> None:
        passed.append(message)

    async def listen() -> None:
        heard, sent = watched(receive, send, lambda: left.append(True))
        for message in told:
            await sent(message)
        for _ in range(2):
            assert await heard() == GONE

    # A browser test of the same process has a loop that runs here.
    with ThreadPoolExecutor(1) as other:
        other.submit(asyncio.run, listen()).result()
    assert len(left) == count and passed == told


def test_the_tab_that_was_changed_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "MAX_TABS", 2)
    desk = Desk()
    for session in ("first", "second", "first", "third"):
        desk.show(session, Tab("c1", "ko"))
    assert desk.knows("first") and desk.knows("third") and not desk.knows("second")
    desk.more("first")
    desk.show("fourth", Tab())
    assert desk.knows("first") and not desk.knows("third")
