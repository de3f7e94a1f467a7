"""Which ways of computing are fastest here: measured once and remembered; knows one model.

Only ways that give the same numbers are compared. Nothing is compiled, and measuring takes some
tenths of a second; the result is kept for the model, the processor, the library and the threads.
"""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from chatbot.engine.int8_linear import Int8Linear, Int8Matrix
from chatbot.engine.kv_attention import NAME, best_attention, direct_kinds, use_attention
from chatbot.engine.llama_step import llama_step

FILE = "kernels.json"
VERSION = 1
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
TRIALS = 3


@dataclass(frozen=True, slots=True)
class Kernels:
    """What was chosen: `attention` is the library's name, or ours for packed attention."""

    attention: str
    direct_caches: tuple[str, ...] = ()
    """Kinds of cache whose layers are asked directly when one token is read."""
    few_rows: int = 0
    """Up to so many rows are multiplied with 8-bit weights in whole numbers."""


def choose_kernels(model: Any, *, name: str, folder: Path) -> Kernels:
    """Measure, or take what was measured before, and let the model use it.

    `folder` has the file of what was measured; one that cannot be read or written is done without.
    """
    key = _key(model, name)
    kernels = _remembered(folder / FILE, key)
    if kernels is None:
        kernels = _measured(model)
        _remember(folder / FILE, key, kernels)
    use_kernels(model, kernels)
    return kernels


def use_kernels(model: Any, kernels: Kernels) -> None:
    """Let the model use what was chosen."""
    use_attention(model, kernels.attention)
    model.direct_caches = kernels.direct_caches if kernels.attention == NAME else ()
    # The step has an attention of its own, which would not be the one that was asked for.
    model.one_token = llama_step(model) if kernels.attention in (NAME, "sdpa") else None
    for module in model.modules():
        if isinstance(module, Int8Linear):
            module.matrix.few_rows = kernels.few_rows


@torch.inference_mode()
def _measured(model: Any) -> Kernels:
    direct = direct_kinds(model)
    return Kernels(best_attention(model, direct), direct, _few_rows(model))


def _few_rows(model: Any) -> int:
    """The most rows for which whole numbers are faster, tried on the first layer's own weights."""
    layers = [m for m in model.modules() if isinstance(m, Int8Linear)]
    if not layers:
        return 0
    matrix: Int8Matrix = max(layers[:-1] or layers, key=lambda m: m.matrix.numbers.numel()).matrix
    most = 0
    for rows in ROWS:
        random = torch.randn(rows, matrix.numbers.shape[1])
        if _seconds(matrix.times_few, random) > _seconds(matrix.times_many, random):
            break
        most = rows
    return most


def _seconds(run: Callable[[torch.Tensor], torch.Tensor], argument: torch.Tensor) -> float:
    """The shortest of some runs, in seconds of this process."""
    found = []
    for _ in range(TRIALS + 1):
        started = time.process_time()
        run(argument)
        found.append(time.process_time() - started)
    return min(found[1:])


def _key(model: Any, name: str) -> str:
    packed = any(isinstance(module, Int8Linear) for module in model.modules())
    parts = (
        VERSION,
        name,
        model.config._attn_implementation,
        str(model.dtype),
        "int8" if packed else "none",
        _processor(),
        torch.__version__,
        torch.get_num_threads(),
    )
    return "|".join(map(str, parts))


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def _remembered(path: Path, key: str) -> Kernels | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))[key]
        values["direct_caches"] = tuple(values["direct_caches"])
        return Kernels(**values)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(path: Path, key: str, kernels: Kernels) -> None:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = None
    entries = {**(known if isinstance(known, dict) else {}), key: asdict(kernels)}
    work = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        work.write_text(json.dumps(entries), encoding="utf-8")
        work.replace(path)
    except OSError:  # measured again the next time
        with suppress(OSError):
            work.unlink()
