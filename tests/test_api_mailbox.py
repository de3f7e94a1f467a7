"""What a reply says on its way to the loop: nothing is lost, and quick texts go together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from chatbot.api import mailbox
from chatbot.api.mailbox import PACE_S, Mailbox
from chatbot.engine.base import TextDelta

T = TypeVar("T")
END = "end"
Box = Mailbox[str]
Taken = list[list[str | TextDelta]]


def _run(work: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own: a browser test before it may have left a loop in this one."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, asyncio.wait_for(work, 30)).result()


def _read(speak: Callable[[Box], None], silence_s: float = 5.0) -> Taken:
    """What is taken until the end, each time, of what another thread says."""

    async def main() -> Taken:
        box: Box = Mailbox(asyncio.get_running_loop())
        thread = threading.Thread(target=speak, args=(box,))
        thread.start()
        taken: Taken = []
        while not taken or END not in taken[-1]:
            taken.append(await box.take(silence_s))
        thread.join()
        return taken

    return _run(main())


def _texts(taken: Taken) -> list[str]:
    return [item.text for items in taken for item in items if isinstance(item, TextDelta)]


def test_texts_that_come_quickly_are_sent_together_and_none_is_lost() -> None:
    words = [f"{n} " for n in range(100)]

    def speak(box: Box) -> None:
        for word in words:
            box.put(TextDelta(word))
            time.sleep(PACE_S / 20)
        box.put(END)

    begin = time.monotonic()
    taken = _read(speak)
    most = 2 + (time.monotonic() - begin) / PACE_S
    assert "".join(_texts(taken)) == "".join(words)
    assert 2 <= len(_texts(taken)) <= most < len(words)


def test_the_first_text_and_whatever_is_no_text_go_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mailbox, "PACE_S", 60.0)

    async def main() -> None:
        box: Box = Mailbox(asyncio.get_running_loop())
        box.put("begun")
        assert await box.take(5) == ["begun"]
        box.put(TextDelta("a"))
        assert await box.take(5) == [TextDelta("a")]
        reading = asyncio.ensure_future(box.take(5))
        await asyncio.sleep(0)
        box.put(TextDelta("b"))
        await asyncio.sleep(0.02)
        assert not reading.done()
        box.put(END)
        assert await reading == [TextDelta("b"), END]

    _run(main())


def test_a_silence_is_told() -> None:
    def speak(box: Box) -> None:
        time.sleep(0.1)
        box.put(END)

    taken = _read(speak, silence_s=0.01)
    assert taken[0] == [] and taken[-1] == [END]
