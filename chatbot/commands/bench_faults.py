"""Memory that runs out in the middle of a chat: does it answer on, and is the memory back?

Each fault gets a conversation of its own. A turn that takes too long counts as a hang.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from chatbot.chat import TurnDone
from chatbot.commands.bench_engine import open_engine, own_services
from chatbot.commands.fault_engine import PLACES, Fault, FaultyEngine, Place
from chatbot.console import Console
from chatbot.engine.base import Engine
from chatbot.engine.process_memory import give_back_freed, process_bytes
from chatbot.errors import ChatbotError, InputError
from chatbot.messages import Turn
from chatbot.services import Services
from chatbot.settings import Settings

WINDOW_TOKENS = 1024
PIECE_TOKENS = 64
REPLY_TOKENS = 48
HANG_S = 300.0
"""A turn takes seconds; one that takes so long will never end."""
STORY = (
    "Tell me a long story about the keeper of a lighthouse, his lamps of oil and the ships that "
    "pass in the night, about the storm that broke the windows, the boat that came with bread and "
    "letters, and the gull that lived on the gallery. Name the people and say what each of them "
    "did on the day of the storm, hour by hour, from the morning until the lamp was lit again."
)
MOST_FAILURES = 9
"""So many calls in a row fail at most before the first token: beyond the last step."""
WARM_UPS = 2
"""Faults at each place before any is counted, so that all is loaded and grown that ever will be."""
AGAIN = 5
"""Turns in which a fault may happen: not every turn is folded."""


@dataclass
class _Count:
    injected: int = 0
    recovered: int = 0
    hangs: int = 0
    finishes: Counter[str] = field(default_factory=Counter)
    rss: list[int] = field(default_factory=list)


def measure(arguments: argparse.Namespace, settings: Settings, console: Console) -> dict[str, Any]:
    """The figures of one run; see the keys. Raises InputError for impossible numbers."""
    if arguments.times < 1:
        raise InputError("Inject each fault at least once.")
    settings = settings.model_copy(
        update={
            "window_tokens": settings.window_tokens or WINDOW_TOKENS,
            "reply_tokens": settings.reply_tokens or REPLY_TOKENS,
            "prefill_piece_tokens": PIECE_TOKENS,
            # Almost every turn is folded.
            "fold_high": 0.1,
            "fold_low": 0.0,
            "min_recent_turns": 0,
        }
    )
    faulty: list[FaultyEngine] = []

    def wrap(own: Settings) -> Engine:
        opened = open_engine(own, console)
        faulty.append(FaultyEngine(opened.engine, opened.model))
        return faulty[0]

    with own_services(settings, wrap) as services:
        report = _inject(services, faulty[0], arguments.times, console)
    return report | {"bounded": _bounded(settings, console)}


def _inject(
    services: Services, engine: FaultyEngine, times: int, console: Console
) -> dict[str, Any]:
    for place in PLACES * WARM_UPS:
        _one(services, engine, Fault(place), _Count())
    baseline = _settled(services)
    counts: dict[Place, _Count] = {}
    for place in PLACES:
        count = counts[place] = _Count()
        for number in range(times):
            console.progress(f"{place}: fault {number + 1} of {times}")
            several = place in ("first_token", "piece_3")
            fault = Fault(place, 1 + number % MOST_FAILURES if several else 1)
            _one(services, engine, fault, count)
            count.rss.append(_settled(services))
            if count.hangs:
                break
    sizes = [rss for count in counts.values() for rss in count.rss]
    return {
        "injected": sum(c.injected for c in counts.values()),
        "recovered": sum(c.recovered for c in counts.values()),
        "hangs": sum(c.hangs for c in counts.values()),
        "rss_ratio": round(sizes[-1] / baseline, 4),
        "rss_ratio_max": round(max(sizes) / baseline, 4),
        "steps": engine.info.details["memory_steps"],
        "places": {
            place: {
                "injected": c.injected,
                "recovered": c.recovered,
                "finishes": dict(c.finishes),
                "rss_ratio": round(c.rss[-1] / baseline, 4),
            }
            for place, c in counts.items()
        },
    }


def _one(services: Services, engine: FaultyEngine, fault: Fault, count: _Count) -> None:
    """One fault in a chat of its own, and a turn after it."""
    conversation_id = services.store.create_conversation().id
    turn: Turn | None = None
    for _ in range(AGAIN):
        engine.arm(fault)
        turn = _turn(services, conversation_id, STORY, count)
        engine.arm(None)
        if fault.raised or count.hangs:
            break
    after = _turn(services, conversation_id, "And then?", count) if not count.hangs else None
    count.injected += fault.raised > 0
    if turn is not None and after is not None and fault.raised:
        count.finishes[turn.finish] += 1
        wanted = ("memory",) if fault.place == "token_20" else ("stop", "length", "memory")
        answered = after.finish in ("stop", "length") and bool(after.reply)
        kept = fault.place != "token_20" or bool(turn.reply)
        count.recovered += turn.finish in wanted and kept and answered
    services.store.delete(conversation_id)
    services.chat.forget(conversation_id)


def _turn(services: Services, conversation_id: str, text: str, count: _Count) -> Turn | None:
    """A turn with the folding and reading ahead after it; None when it hangs."""
    turns: list[Turn] = []
    errors: list[ChatbotError] = []

    def talk() -> None:
        try:
            for event in services.chat.reply(conversation_id, text):
                if isinstance(event, TurnDone):
                    turns.append(event.turn)
        except ChatbotError as error:  # also one that hung until all was closed
            errors.append(error)

    thread = Thread(target=talk, daemon=True)
    thread.start()
    thread.join(HANG_S)
    if thread.is_alive() or not services.chat.wait_for_folds(HANG_S):
        count.hangs += 1
        return None
    if errors:
        raise errors[0]
    if not turns:
        raise ChatbotError("A turn ended without a last event; please report this fault.")
    return turns[0]


def _settled(services: Services) -> int:
    """Bytes of the process when nothing runs and no cache is kept."""
    assert services.engine.memory().kv_bytes == 0, "a cache outlived its chat"
    gc.collect()
    give_back_freed()
    return process_bytes()


def _bounded(settings: Settings, console: Console) -> dict[str, Any]:
    """The same with a real bound on the address space, in a process of its own."""
    console.progress("a real bound on memory")
    command = [sys.executable, "-m", "chatbot.commands.bounded_child"]
    child = subprocess.run(
        command,
        input=settings.model_dump_json(),
        capture_output=True,
        text=True,
        timeout=4 * HANG_S,
        check=False,
    )
    if child.returncode:
        lines = child.stderr.strip().splitlines()
        return {"recovered": False, "exit_code": child.returncode, "error": (lines or [""])[-1]}
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found
