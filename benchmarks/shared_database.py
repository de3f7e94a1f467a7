"""Two app processes at one PostgreSQL database, one of them killed: is every turn there, once?

    python -m benchmarks.shared_database --json

Starts a server of its own, or takes --database-url with an empty schema. Each conversation goes
back and forth between the processes. When a part of the turns is done, one process gets SIGKILL;
its users turn to the other one and ask again, as a person does who reloads the page.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks.postgres_server import own_server
from benchmarks.shared_database_checks import common_faults, own_faults
from chatbot.store import Store

ROOT = Path(__file__).resolve().parent.parent
GIVE_UP_S = 240.0
PAUSE_S = 0.2


@dataclass(frozen=True)
class Plan:
    """How much is done. `in_common` conversations are asked in by both processes at once."""

    conversations: int = 50
    turns: int = 20
    in_common: int = 5
    kill_after: float = 0.4
    lease_s: float = 5.0


class Process:
    """An app process, asked from many threads."""

    def __init__(self, url: str, lease_s: float) -> None:
        command = [sys.executable, "-m", "benchmarks.shared_database_child", url]
        self._child = subprocess.Popen(
            [*command, "--lease-s", str(lease_s)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lock = threading.Lock()
        self._waiting: dict[int, SimpleQueue[dict[str, Any] | None]] = {}
        self._numbers = itertools.count()
        self.is_dead = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def ask(self, conversation: str, question: str, *, is_again: bool) -> dict[str, Any] | None:
        """The answer, or None when the process died first."""
        number, box = next(self._numbers), SimpleQueue[dict[str, Any] | None]()
        ask = {"conversation": conversation, "question": question, "is_again": is_again}
        with self._lock:
            if self.is_dead or self._child.stdin is None:
                return None
            self._waiting[number] = box
            try:
                self._child.stdin.write(json.dumps({"number": number, "ask": ask}) + "\n")
                self._child.stdin.flush()
            except BrokenPipeError:
                return None
        return box.get()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._child.wait()
        self._listener.join()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()

    def kill(self) -> None:
        self._child.kill()

    def end(self) -> int:
        """Let it close its store by itself; its exit status."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        return self._child.wait(GIVE_UP_S)

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            answer = json.loads(line)
            with self._lock:
                box = self._waiting.pop(answer["number"])
            box.put(answer)
        with self._lock:
            self.is_dead = True
            left = list(self._waiting.values())
        for box in left:
            box.put(None)


@dataclass
class Run:
    """Two processes, their users, and what those saw."""

    plan: Plan
    processes: list[Process]
    done: int = 0
    cut_off: int = 0
    refused: int = 0
    killed_at: float = 0.0
    longest_wait_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def talk(self, conversation: str, name: str, first: int, *, hops: bool) -> None:
        """One user asks all questions in order, going on only after an answer."""
        for turn in range(self.plan.turns):
            question = f"question number {name}-{turn}"
            self._ask(conversation, question, first + turn if hops else first)
            self._count()

    def _ask(self, conversation: str, question: str, at: int) -> None:
        started, is_again = time.monotonic(), False
        while time.monotonic() - started < GIVE_UP_S:
            process = self.processes[at % 2]
            if process.is_dead:
                process = self.processes[(at + 1) % 2]
            answer = process.ask(conversation, question, is_again=is_again)
            if answer is not None and answer.get("finish") == "stop":
                waited = time.monotonic() - started
                with self._lock:
                    self.longest_wait_s = max(self.longest_wait_s, waited)
                return
            if answer is not None and "fault" in answer:
                raise RuntimeError(f"a process failed: {answer['fault']}")
            is_again = True
            with self._lock:
                self.cut_off += answer is None
                self.refused += answer is not None
            time.sleep(PAUSE_S)
        raise TimeoutError(f"no answer to {question}")

    def _count(self) -> None:
        total = self.plan.turns * (self.plan.conversations + 2 * self.plan.in_common)
        with self._lock:
            self.done += 1
            if not self.killed_at and self.done >= self.plan.kill_after * total:
                self.killed_at = time.monotonic()
                self.processes[1].kill()


def run(plan: Plan, url: str) -> dict[str, Any]:
    """Everything, and what is found in the database after it."""
    with Store(url, lease_s=plan.lease_s) as store:
        own = [store.create_conversation(f"own {n}").id for n in range(plan.conversations)]
        both = [store.create_conversation(f"both {n}").id for n in range(plan.in_common)]
        with ExitStack() as stack:
            state = Run(plan, [stack.enter_context(Process(url, plan.lease_s)) for _ in range(2)])
            seconds = _talks(state, own, both)
            status = state.processes[0].end()
        faults = [
            fault for n, chat in enumerate(own) for fault in own_faults(store, chat, n, plan.turns)
        ]
        faults += [
            fault
            for n, chat in enumerate(both)
            for fault in common_faults(store, chat, n, plan.turns)
        ]
        folds = [len(store.summary_versions(chat)) for chat in (*own, *both)]
    return {
        "processes": 2,
        "killed": 1,
        "conversations": len(own) + len(both),
        "turns": state.done,
        "seconds": round(seconds, 1),
        "cut_off_by_the_kill": state.cut_off,
        "asked_to_wait": state.refused,
        "longest_wait_s": round(state.longest_wait_s, 1),
        "lease_s": plan.lease_s,
        "folds": sum(folds),
        "exit_status": status,
        "faults": faults,
        "holds": not faults and status == 0 and bool(state.killed_at),
    }


def _talks(state: Run, own: Sequence[str], both: Sequence[str]) -> float:
    """Let all users talk at once; how many seconds it took."""
    started = time.monotonic()
    with ThreadPoolExecutor(len(own) + 2 * len(both)) as users:
        talks = [
            users.submit(state.talk, chat, f"c{n}", n, hops=True) for n, chat in enumerate(own)
        ]
        talks += [
            users.submit(state.talk, chat, f"b{n}p{at}", at, hops=False)
            for n, chat in enumerate(both)
            for at in (0, 1)
        ]
        for talk in talks:
            talk.result()
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database-url")
    parser.add_argument("--conversations", type=int, default=Plan.conversations)
    parser.add_argument("--turns", type=int, default=Plan.turns)
    parser.add_argument("--lease-s", type=float, default=Plan.lease_s)
    parser.add_argument("--json", action="store_true", help="print one line of JSON last")
    arguments = parser.parse_args()
    plan = Plan(arguments.conversations, arguments.turns, lease_s=arguments.lease_s)
    with ExitStack() as stack:
        url = arguments.database_url or stack.enter_context(own_server()).fresh()
        found = run(plan, url)
    if arguments.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        for key, value in found.items():
            print(f"{key:>20}  {value}")
    sys.exit(0 if found["holds"] else 1)


if __name__ == "__main__":
    main()
