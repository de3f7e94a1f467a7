"""Many users at the API at once: how long a turn takes beside the engine, and what memory does.

Starts the program with its page and API over a scripted engine in a process of its own, and talks
with it from another: each user has a key, a store and a library of their own, one conversation that
goes on, and thinks between questions. The last line is JSON.

    python -m benchmarks.api_load --json                         200 users for 5 minutes
    python -m benchmarks.api_load --users 20 --seconds 30 --think-s 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.api_server import serve

MIB = 1 << 20
SAMPLE_S = 2.0
LIMIT_S = 0.150
QUESTIONS = (
    "My sister Mina moved to Busan on 3 May; please keep that in mind.",
    "What did I say about the train on Friday?",
    "Please write two sentences about lighthouses.",
    "회의는 다음 주 화요일 오후 3시로 옮겨졌어요. 기억해 주세요.",
    "Which of the two plans was cheaper, and by how much?",
    "The budget is 4,300 euros and must not be exceeded.",
)


@dataclass(slots=True)
class Seen:
    """What the users saw. `own_s`: seconds of a turn without the engine; `first_s`: until text."""

    own_s: list[float] = field(default_factory=list)
    opening_s: list[float] = field(default_factory=list)
    """The same of each user's first turn, which opens their store and library; in `own_s`, too."""
    first_s: list[float] = field(default_factory=list)
    server_own_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked."""

    users: int
    seconds: float
    think_s: float
    tokens_per_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; exit code 1 where the bound on time is exceeded, memory grows, or anything fails."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.api_load")
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--think-s", type=float, default=20.0, help="mean, between two questions")
    parser.add_argument(
        "--tokens-per-s", type=float, default=60.0, help="of each reply; 0: at once"
    )
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    given = parser.parse_args(arguments)
    load = Load(given.users, given.seconds, given.think_s, given.tokens_per_s)
    with tempfile.TemporaryDirectory(prefix="api-load-") as folder:
        result = measure(load, Path(folder))
    if not given.json:
        print("\n".join(f"{name:>24}  {value}" for name, value in result.items()))
    print(json.dumps(result))
    return 0 if result["ok"] else 1


def measure(load: Load, folder: Path) -> dict[str, Any]:
    """Start the server, let the users talk, and say what was seen."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs, folder, load.users, load.tokens_per_s))
    server.start()
    try:
        started: dict[str, Any] = _told(mine, server)
        memory: list[tuple[float, int]] = []
        process = psutil.Process(server.pid)
        cpu_s = sum(process.cpu_times()[:2])
        # In a thread of its own, since a test may run where a loop runs already.
        with ThreadPoolExecutor(1) as thread:
            everybody = _everybody(load, started["url"], started["keys"], (process, memory))
            seen = thread.submit(asyncio.run, everybody).result()
        cpu_s = sum(process.cpu_times()[:2]) - cpu_s
        mine.send("end")
        server.join(60)
    finally:
        if server.is_alive():
            server.kill()
    return _result(load, seen, memory, cpu_s)


def _told(mine: Connection, server: Any) -> Any:
    while not mine.poll(1.0):
        if not server.is_alive():
            sys.exit("api_load: the server has ended while it started.")
    return mine.recv()


async def _everybody(
    load: Load, url: str, keys: list[str], watched: tuple[psutil.Process, list[tuple[float, int]]]
) -> Seen:
    seen = Seen()
    end_s = time.monotonic() + load.seconds
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=load.users)
    watcher = asyncio.create_task(_watch(*watched))
    async with httpx.AsyncClient(
        base_url=url, timeout=60.0, trust_env=False, limits=limits
    ) as client:
        await asyncio.gather(
            *(_user(client, n, key, (load, end_s), seen) for n, key in enumerate(keys))
        )
    watcher.cancel()
    return seen


async def _user(
    client: httpx.AsyncClient, number: int, key: str, until: tuple[Load, float], seen: Seen
) -> None:
    load, end_s = until
    chance, is_first = random.Random(number), True
    # Users come one by one, as they do; otherwise all would think in step.
    await asyncio.sleep(chance.uniform(0, load.think_s))
    while time.monotonic() < end_s:
        question = chance.choice(QUESTIONS)
        try:
            own_s = await _turn(client, key, question, seen)
            if is_first:
                seen.opening_s.append(own_s)
            is_first = False
        except (httpx.HTTPError, ValueError, KeyError) as error:
            seen.errors.append(f"{type(error).__name__}: {error}"[:200])
        pause_s = chance.expovariate(1 / load.think_s) if load.think_s else 0.0
        await asyncio.sleep(max(min(pause_s, end_s - time.monotonic()), 0.0))


async def _turn(client: httpx.AsyncClient, key: str, question: str, seen: Seen) -> float:
    begin = time.perf_counter()
    first = None
    last: dict[str, Any] = {}
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": question}],
        "stream": True,
        "metadata": {"conversation_id": "talk"},
    }
    headers = {"Authorization": f"Bearer {key}"}
    async with client.stream("POST", "v1/chat/completions", json=body, headers=headers) as answer:
        if answer.status_code != 200:
            await answer.aread()
            raise ValueError(f"{answer.status_code} {answer.text}")
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                if first is None and '"content":"' in line and '"content":""' not in line:
                    first = time.perf_counter() - begin
                if '"chatbot":' in line or '"error":' in line:
                    last = json.loads(line[6:])
    total_s = time.perf_counter() - begin
    timings = last["chatbot"]["timings"]
    seen.turns += 1
    own_s = total_s - timings["prefill_s"] - timings["decode_s"]
    seen.own_s.append(own_s)
    seen.server_own_s.append(timings["own_s"])
    seen.first_s.append(first or total_s)
    return float(own_s)


async def _watch(process: psutil.Process, memory: list[tuple[float, int]]) -> None:
    begin = time.monotonic()
    while True:
        memory.append((time.monotonic() - begin, process.memory_info().rss))
        await asyncio.sleep(SAMPLE_S)


def _result(
    load: Load, seen: Seen, memory: list[tuple[float, int]], cpu_s: float
) -> dict[str, Any]:
    growth = growth_mib(memory)
    p95 = percentile(seen.own_s, 0.95)
    is_flat = growth <= max(16.0, 0.05 * memory[-1][1] / MIB)
    return {
        "benchmark": "api_load",
        "users": load.users,
        "seconds": load.seconds,
        "think_s": load.think_s,
        "tokens_per_s": load.tokens_per_s,
        "turns": seen.turns,
        "turns_per_s": round(seen.turns / load.seconds, 2),
        "own_p50_ms": round(1000 * percentile(seen.own_s, 0.5), 1),
        "own_p95_ms": round(1000 * p95, 1),
        "own_p99_ms": round(1000 * percentile(seen.own_s, 0.99), 1),
        "own_max_ms": round(1000 * max(seen.own_s, default=0.0), 1),
        "first_turns_p95_ms": round(1000 * percentile(seen.opening_s, 0.95), 1),
        "server_own_p95_ms": round(1000 * percentile(seen.server_own_s, 0.95), 1),
        "first_text_p95_ms": round(1000 * percentile(seen.first_s, 0.95), 1),
        "server_cpu_ms_per_turn": round(1000 * cpu_s / max(seen.turns, 1), 1),
        "memory_start_mib": round(memory[0][1] / MIB),
        "memory_end_mib": round(memory[-1][1] / MIB),
        "memory_growth_second_half_mib": round(growth, 1),
        "errors": len(seen.errors),
        "first_errors": seen.errors[:3],
        "ok": bool(seen.turns and p95 <= LIMIT_S and is_flat and not seen.errors),
    }


def growth_mib(memory: Sequence[tuple[float, int]]) -> float:
    """How much the last quarter lies above the third one, on average: at first, everybody's store
    is opened and caches fill."""
    quarter = max(len(memory) // 4, 1)
    third = [n_bytes for _, n_bytes in memory[-2 * quarter : -quarter]] or [memory[-1][1]]
    last = [n_bytes for _, n_bytes in memory[-quarter:]]
    return (sum(last) / len(last) - sum(third) / len(third)) / MIB


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
