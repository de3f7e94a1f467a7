"""A reply under a real bound on the address space, as `ulimit -v` sets one: reads settings as JSON,
prints one JSON line. The guard that looks at free memory is off, so that allocations really fail.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path
from typing import Any

from chatbot.commands.bench_engine import open_engine
from chatbot.console import Console
from chatbot.engine.base import Finished, SamplingParams
from chatbot.engine.device_memory import Memory
from chatbot.engine.local import TransformersEngine
from chatbot.engine.process_memory import give_back_freed, process_bytes
from chatbot.errors import OutOfMemoryError
from chatbot.settings import Settings

ROOMS_MIB = (16, 8, 4, 2)
"""Tried one after another until an allocation fails."""
MIB = 1 << 20
PROMPT_TOKENS = 900
REPLY_TOKENS = 8
_ENDLESS = Memory(1 << 50, 1 << 50)


def main() -> None:
    settings = Settings.model_validate_json(sys.stdin.read())
    settings = settings.model_copy(update={"device": "cpu", "kv_cache_dtype": "16bit"})
    opened = open_engine(settings, Console.of_process())
    engine = TransformersEngine(opened.loaded, opened.engine.tokenizer, free=lambda: _ENDLESS)
    words = engine.tokenizer.encode("The keeper lit the lamp at dusk and read until the morning. ")
    long = (words * PROMPT_TOKENS)[:PROMPT_TOKENS]
    _reply(engine, long)  # so that all is loaded and grown that ever will be
    give_back_freed()
    before = process_bytes()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MIB, hard))
    for room_mib in ROOMS_MIB:
        # Memory that was freed before is taken too, all but the room.
        ballast = _everything()
        del ballast[:room_mib]
        faulted = _reply(engine, long)
        if faulted["ladder"]:
            break
        ballast.clear()
    after = _reply(engine, long[:100])
    ballast.clear()
    give_back_freed()
    print(
        json.dumps(
            {
                "room_bytes": room_mib * MIB,
                "faulted": faulted,
                "after": after,
                "memory_errors": sum(engine.info.details["memory_steps"].values()),
                "rss_ratio": round(process_bytes() / before, 4),
                "recovered": bool(faulted["ladder"]) and after["finish"] in ("stop", "length"),
            }
        )
    )


def _reply(engine: TransformersEngine, prompt: tuple[int, ...]) -> dict[str, Any]:
    try:
        *_, last = engine.generate(prompt, SamplingParams(max_tokens=REPLY_TOKENS))
    except OutOfMemoryError as error:
        return {"finish": "memory", "ladder": error.ladder}
    assert isinstance(last, Finished)
    return {"finish": last.finish, "ladder": last.usage.ladder}


def _everything() -> list[bytearray]:
    """All that can still be had, in blocks of a MiB."""
    blocks: list[bytearray] = []
    try:
        while True:
            blocks.append(bytearray(MIB))
    except MemoryError:
        return blocks


def _address_space() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    match = re.search(r"^VmSize:\s+(\d+) kB$", status, re.MULTILINE)
    assert match is not None
    return int(match[1]) * 1024


if __name__ == "__main__":
    main()
