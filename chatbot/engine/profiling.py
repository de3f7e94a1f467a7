"""Where time and memory go while a model works, by torch's own profiler; knows no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

SNAPSHOT_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of operation over all of its calls, what it calls itself left out.

    `allocated_bytes` is what it allocated less what it freed; microseconds are of the device
    where there is one.
    """

    name: str
    calls: int
    time_us: float
    allocated_bytes: int


@dataclass
class Profile:
    """Filled when the block of `profiled` ends."""

    operations: list[Operation] = field(default_factory=list)
    trace: Path | None = None
    """A trace that chrome://tracing and Perfetto open."""
    snapshot: Path | None = None
    """On CUDA: the allocator's history, for pytorch.org/memory_viz."""

    @property
    def total_us(self) -> float:
        return sum(operation.time_us for operation in self.operations)

    def by_time(self, n: int) -> list[Operation]:
        return sorted(self.operations, key=lambda o: -o.time_us)[:n]

    def by_memory(self, n: int) -> list[Operation]:
        return sorted(self.operations, key=lambda o: -o.allocated_bytes)[:n]


@contextmanager
def profiled(folder: Path) -> Iterator[Profile]:
    """Profile a block; the files are written into `folder`, which is made."""
    on_cuda = torch.cuda.is_available()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if on_cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        torch.cuda.memory._record_memory_history(max_entries=SNAPSHOT_ENTRIES)
    found = Profile()
    try:
        with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
            yield found
        folder.mkdir(parents=True, exist_ok=True)
        found.operations = [_operation(event, on_cuda) for event in profiler.key_averages()]
        found.trace = folder / "trace.json"
        profiler.export_chrome_trace(str(found.trace))
        if on_cuda:
            found.snapshot = folder / "memory.pickle"
            dump: Callable[[str], None] = torch.cuda.memory._dump_snapshot
            dump(str(found.snapshot))
    finally:
        if on_cuda:
            torch.cuda.memory._record_memory_history(enabled=None)


def _operation(event: Any, on_cuda: bool) -> Operation:
    device = "device" if on_cuda else "cpu"
    return Operation(
        name=str(event.key),
        calls=int(event.count),
        time_us=float(getattr(event, f"self_{device}_time_total")),
        allocated_bytes=int(getattr(event, f"self_{device}_memory_usage")),
    )
