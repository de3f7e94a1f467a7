"""How much memory there is now, on the CPU side and on a CUDA device; knows no models."""

from __future__ import annotations

import math
import mmap
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from chatbot.errors import InputError, ModelError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b?|b)?\s*", re.IGNORECASE)
CGROUP = Path("/sys/fs/cgroup")
_CUDA_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
_ALLOCATOR_SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Where users set torch's allocator; the second is the older name."""
_MAPPED = Path("/proc/self/statm")
_CPU_FLAGS = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in all and bytes free now, of the machine or of the limit put on this process."""

    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What this process has of a CUDA device: in tensors, held in all, and at most so far."""

    allocated_bytes: int = 0
    reserved_bytes: int = 0
    peak_bytes: int = 0
    total_bytes: int = 0


def parse_bytes(text: str) -> int:
    """Bytes of "12GiB", "800 MB" or "1073741824B". Raises InputError for anything else.

    A number alone is refused: whoever writes 12 means gigabytes, not bytes.
    """
    match = _SIZE.fullmatch(text)
    if match and not match[2] and float(match[1]) > 0:
        raise InputError(f"{text!r} has no unit; give a unit, such as 12GiB.")
    unit = match[2].lower().removesuffix("b") if match and match[2] else ""
    n_bytes = int(float(match[1]) * (_UNITS | _BINARY)[unit]) if match else 0
    if n_bytes <= 0:
        raise InputError(f"{text!r} is no amount of memory; write it like 12GiB or 800MiB.")
    return n_bytes


def cpu_memory() -> Memory:
    """The machine's memory, or the container's limit where that is smaller."""
    machine = psutil.virtual_memory()
    total, available = machine.total, machine.available
    for limit, used in _cgroup_limits(CGROUP):
        total = min(total, limit)
        available = min(available, max(0, limit - used))
    return Memory(total, int(min(available, _address_space_left())))


def address_space_bytes() -> int | None:
    """What this process has mapped, in memory or not; None where it is not known."""
    try:
        pages = int(_MAPPED.read_text(encoding="ascii").split()[0])
    except OSError:  # not Linux
        return None
    return pages * mmap.PAGESIZE


def _address_space_left() -> float:
    """What a bound such as that of `ulimit -v` leaves."""
    if sys.platform == "win32":
        return math.inf
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = None if limit == resource.RLIM_INFINITY else address_space_bytes()
    return math.inf if taken is None else max(0, limit - taken)


def cuda_memory() -> Memory | None:
    """The current CUDA device's memory, or None where there is no such device.

    Raises ModelError for a device that fails, as when other programs have taken all of it.
    """
    if sys.platform == "linux" and not any(map(Path.exists, _CUDA_DEVICES)):
        return None  # known without the seconds that importing torch takes
    if not any(name in os.environ for name in _ALLOCATOR_SETTINGS):
        # Read when the device is first used. Caches that grow leave holes otherwise, which count
        # as taken and can hold nothing.
        os.environ[_ALLOCATOR_SETTINGS[0]] = "expandable_segments:True"
    import torch

    if not torch.cuda.is_available():
        return None
    try:
        free, total = torch.cuda.mem_get_info()
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0][:200]
        message = (
            f"The CUDA device cannot be used ({reason}); close other programs on it and start "
            "again, or choose --device cpu."
        )
        raise ModelError(message) from error
    # What this process's allocator holds without using it is available too.
    unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return Memory(total, free + unused)


def cuda_use() -> DeviceUse | None:
    """What this process takes of the current CUDA device, or None where there is none."""
    memory = cuda_memory()
    if memory is None:
        return None
    import torch

    return DeviceUse(
        torch.cuda.memory_allocated(),
        torch.cuda.memory_reserved(),
        torch.cuda.max_memory_allocated(),
        memory.total_bytes,
    )


def reset_cuda_peak() -> None:
    """Let the device's peak start anew."""
    import torch

    torch.cuda.reset_peak_memory_stats()


def has_fast_bfloat16() -> bool:
    """Whether this CPU computes in bfloat16 itself.

    Where it does not, float32 is faster in spite of twice the bytes: 3.4 times in prefill and
    1.3 in decoding with the demo model on an AVX-512 machine.
    """
    try:
        flags = _CPU_FLAGS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return False
    return re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", flags) is not None


def has_fast_int8() -> bool:
    """Whether this CPU multiplies 8-bit numbers faster than floats, many at once."""
    try:
        flags = _CPU_FLAGS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return False
    return re.search(r"\b(avx512_vnni|avx_vnni|amx_int8)\b", flags) is not None


def device_memory(*, on_cuda: bool) -> Memory:
    """Memory of the device that a model runs on."""
    return (cuda_memory() if on_cuda else None) or cpu_memory()


def _cgroup_limits(root: Path) -> list[tuple[int, int]]:
    """Limits of the control groups of this process and what they use, both versions."""
    version_2 = _limit(root, "memory.max", "memory.current", "inactive_file")
    group = root / "memory"
    version_1 = _limit(
        group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    )
    return [found for found in (version_2, version_1) if found is not None]


def _limit(group: Path, limit: str, used: str, reclaimable: str) -> tuple[int, int] | None:
    try:
        limit_bytes = int((group / limit).read_text())
        used_bytes = int((group / used).read_text())
        statistics = (group / "memory.stat").read_text()
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
    match = re.search(rf"^{reclaimable} (\d+)$", statistics, re.MULTILINE)
    # Cached file pages count as used but are given up on demand.
    return limit_bytes, max(0, used_bytes - (int(match[1]) if match else 0))
