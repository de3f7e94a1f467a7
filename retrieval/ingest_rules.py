"""How files are to be read and cut, and how far one is. Knows no stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retrieval.load import LoadLimits
from retrieval.types import CountTokens


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far one file is: `done` of `total` windows in the stage "embed", else 0 or 1 of 1."""

    file: str
    stage: str
    """load, chunk, embed or store."""
    done: int
    total: int


Report = Callable[[IngestProgress], None]


@dataclass(frozen=True, slots=True)
class IngestRules:
    """How files are read and cut."""

    count_tokens: CountTokens
    chunk_min_tokens: int
    chunk_max_tokens: int
    limits: LoadLimits
    remove_running_lines: bool = True
