"""What came out of a run, as frozen data and as JSON. Judges nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from chatbot.errors import InputError
from chatbot.records import to_json
from chatbot.regression.outputs import write_text

Status = Literal["passed", "flaky", "failed", "error", "skipped"]
Layer = Literal["", "never stored", "stored but not in the prompt", "in the prompt but not used"]
FORMAT = "chatbot-regress-1"
MAX_SAMPLES = 1_000_000
"""Of a case in a saved run; far more than can be asked for."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An assertion that did not hold in a turn."""

    assertion: str
    invariant: bool
    found: str
    file: str = ""
    line: int = 0
    layer: Layer = ""
    where: str = ""
    """Where the fact is, or was looked for."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn of a sample. `trace` is kept for turns with failures only."""

    number: int
    line: int
    question: str
    reply: str
    finish: str
    latency_s: float = 0.0
    first_token_s: float | None = None
    prompt_tokens: int = 0
    reused_tokens: int = 0
    completion_tokens: int = 0
    kv_bytes: int = 0
    process_bytes: int = 0
    failures: tuple[Failure, ...] = ()
    trace: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures of all turns of a case."""

    turns: int = 0
    latency_p50_s: float = 0.0
    latency_max_s: float = 0.0
    first_token_p50_s: float = 0.0
    prompt_tokens_max: int = 0
    completion_tokens: int = 0
    reused_share: float = 0.0
    kv_bytes_max: int = 0
    process_bytes_max: int = 0


@dataclass(frozen=True, slots=True)
class SampleResult:
    """One conversation. `turns` are kept only when it did not pass."""

    number: int
    passed: bool
    breached: bool = False
    """An invariant did not hold."""
    error: str = ""
    duration_s: float = 0.0
    turns: tuple[TurnRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case with all its samples. `low` and `high`: Wilson interval of the share that passes."""

    id: str
    why: str
    status: Status
    file: str = ""
    line: int = 0
    tags: tuple[str, ...] = ()
    samples: int = 0
    passes: int = 0
    pass_rate: float = 1.0
    low: float = 0.0
    high: float = 1.0
    reason: str = ""
    """One sentence: the first thing that went wrong, "" if nothing did."""
    digest: str = ""
    sampled: bool = False
    """Whether chance has a part in it."""
    duration_s: float = 0.0
    metrics: Metrics = field(default_factory=Metrics)
    failing: tuple[SampleResult, ...] = ()
    """The first samples that did not pass."""

    @property
    def good(self) -> bool:
        return self.status in ("passed", "flaky", "skipped")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What was tested, as far as it can change the outcome."""

    model: str = ""
    revision: str = ""
    quantization: str = ""
    kv_cache: str = ""
    device: str = ""
    prompts: str = ""
    embedder: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    suite: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole run."""

    fingerprint: Fingerprint
    cases: tuple[CaseResult, ...]
    started: str = ""
    duration_s: float = 0.0
    interrupted: bool = False
    planned: int = 0
    """Cases that were to be run; more than there are results when it was interrupted."""
    left_out: tuple[str, ...] = ()
    """Cases of the suite that were not run."""
    format: str = FORMAT

    def count(self, status: Status) -> int:
        return sum(case.status == status for case in self.cases)

    @property
    def good(self) -> bool:
        return all(case.good for case in self.cases)


_RUN = TypeAdapter(RunResult)


def save_run(run: RunResult, path: Path) -> None:
    """Write a run as JSON. Raises InputError when the file cannot be written."""
    write_text(path, to_json(run) + "\n")


def load_run(path: Path) -> RunResult:
    """Read a saved run. Raises InputError that names the file."""
    try:
        run = _RUN.validate_json(path.read_bytes())
    except OSError as error:
        reason = error.strerror or "unknown"
        raise InputError(f"The earlier run {path} cannot be read: {reason}.") from error
    except ValidationError as error:
        sentence = f"{path} is no earlier run; make one with --save {path}."
        raise InputError(sentence) from error
    if not all(0 <= case.passes <= case.samples <= MAX_SAMPLES for case in run.cases):
        sentence = f"{path} is damaged: a case passed more often than it ran; make it again."
        raise InputError(sentence)
    if run.format != FORMAT:
        raise InputError(f"{path} is a run of another format; make it again with --save {path}.")
    return run
