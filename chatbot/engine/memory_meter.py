"""Live figures of memory: what weights, caches and work take of the process and the device.

Knows a store's figures and the counters of the system; holds no tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from chatbot.engine.device_memory import DeviceUse, cuda_use, reset_cuda_peak
from chatbot.engine.process_memory import process_bytes, process_peak_bytes, reset_peak
from chatbot.messages import MemoryFigures


@dataclass(frozen=True, slots=True)
class _Start:
    """How things stood when the first of the replies that run began."""

    process_bytes: int = 0
    kv_bytes: int = 0
    device_bytes: int = 0
    peak_is_new: bool = False


class MemoryMeter:
    """Peaks of the reply that runs, or ran last. Replies at once are measured together.

    On a CPU the peak of the work is what the process grew by at most since the reply began, less
    what its cache grew by: work that fits into memory freed before, and not yet returned to the
    system, does not show. On a CUDA device it is the allocator's own peak, and exact.
    """

    def __init__(self, weights: int, *, on_cuda: bool) -> None:
        self._weights_bytes = weights
        self._on_cuda = on_cuda
        self._lock = Lock()
        self._running = 0
        self._start = _Start()

    def begin(self, kv_bytes: int) -> None:
        """A reply begins, with so many bytes in caches."""
        with self._lock:
            self._running += 1
            if self._running > 1:
                return
            device = cuda_use() if self._on_cuda else None
            if device is not None:
                reset_cuda_peak()
            reset = reset_peak()
            self._start = _Start(
                process_bytes(), kv_bytes, device.allocated_bytes if device else 0, reset
            )

    def end(self) -> None:
        """A reply has ended."""
        with self._lock:
            self._running -= 1

    def figures(self, kv_bytes: int, bound_bytes: int, kept: Mapping[str, int]) -> MemoryFigures:
        """As things are now; `kept` are bytes of caches by conversation."""
        device = (cuda_use() if self._on_cuda else None) or DeviceUse()
        peak = process_peak_bytes()
        return MemoryFigures(
            weights_bytes=self._weights_bytes,
            kv_bytes=kv_bytes,
            kv_bound_bytes=bound_bytes,
            kv_by_conversation=dict(kept),
            activations_peak_bytes=self._work_peak(kv_bytes, peak, device),
            process_bytes=process_bytes(),
            process_peak_bytes=peak,
            device_allocated_bytes=device.allocated_bytes,
            device_reserved_bytes=device.reserved_bytes,
            device_peak_bytes=device.peak_bytes,
            device_total_bytes=device.total_bytes,
        )

    def _work_peak(self, kv_bytes: int, peak_bytes: int, device: DeviceUse) -> int:
        start = self._start
        grown = max(0, kv_bytes - start.kv_bytes)
        if self._on_cuda:
            return max(0, device.peak_bytes - start.device_bytes - grown)
        return max(0, peak_bytes - start.process_bytes - grown) if start.peak_is_new else 0


def weights_in_memory(parts: Iterable[Any]) -> int:
    """Bytes of parameters and buffers as they are held; what is shared counts once."""
    storages = {}
    for part in parts:
        storage = part.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def idle_figures(kept: Mapping[str, int] | None = None) -> MemoryFigures:
    """Of a process without a real model; `kept` are made-up bytes of caches by conversation."""
    kv = dict(kept or {})
    return MemoryFigures(
        kv_bytes=sum(kv.values()),
        kv_bound_bytes=1 << 20,
        kv_by_conversation=kv,
        process_bytes=process_bytes(),
        process_peak_bytes=process_peak_bytes(),
    )
