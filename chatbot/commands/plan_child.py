"""A model in a process of its own: what weights, caches and a full window really take.

Reads a case as JSON from standard input and prints planned and measured bytes as one JSON line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from chatbot.commands.bench_watch import LoadLines
from chatbot.console import Console
from chatbot.engine.base import EngineEvent, Finished, SamplingParams
from chatbot.engine.loading import load_files, load_model
from chatbot.engine.local import TransformersEngine
from chatbot.engine.memory import MemoryPlan, PlanRequest, make_plan
from chatbot.engine.model_figures import figures_of
from chatbot.engine.models import read_config
from chatbot.engine.process_memory import (
    give_back_freed,
    process_bytes,
    process_peak_bytes,
    reset_peak,
)
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.errors import ModelError
from chatbot.settings import Settings

TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured. Prompt and reply together fill a window to its last token but one."""

    value_bytes: int
    """Of an unpacked number; 0 takes what the program would."""
    prompt_tokens: int
    reply_tokens: int = 8
    replies_at_once: int = 1


def in_child(settings: Settings, case: Case) -> dict[str, Any]:
    """Measure a case in a new process. Raises ModelError with its last line when that fails."""
    asked = {"settings": settings.model_dump(mode="json"), "case": asdict(case)}
    done = subprocess.run(
        [sys.executable, "-m", "chatbot.commands.plan_child"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ModelError(f"The measuring process failed: {(lines or ['no reason given'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    asked = json.loads(sys.stdin.read())
    print(json.dumps(measured(Settings(**asked["settings"]), Case(**asked["case"]))))


def measured(settings: Settings, case: Case) -> dict[str, Any]:
    """Planned and measured bytes of one case, in this process."""
    report = LoadLines(Console.of_process())
    settings = settings.model_copy(update={"max_concurrent_replies": case.replies_at_once})
    files, plan = load_files(settings, report)
    config = read_config(settings.model, cache_dir=settings.cache_dir).config
    request = PlanRequest(
        weights=plan.weights,
        cache=plan.cache,
        window_tokens=case.prompt_tokens + case.reply_tokens,
        piece_tokens=settings.prefill_piece_tokens,
        value_bytes=case.value_bytes or plan.value_bytes,
        replies_at_once=case.replies_at_once,
    )
    plan = make_plan(figures_of(config), plan.available_bytes, request)
    loaded = load_model(settings, files, plan, report)
    engine = TransformersEngine(loaded, load_tokenizer(files.folder))
    give_back_freed()
    loaded_bytes = process_bytes()
    reset_peak()
    tokens = _fill(engine, case)
    found = engine.memory()
    return {
        "tokens": tokens,
        "planned": _planned(plan),
        "measured": {
            "weights_bytes": found.weights_bytes,
            "kv_bytes": found.kv_bytes,
            "loaded_bytes": loaded_bytes,
            "peak_bytes": process_peak_bytes(),
        },
    }


def _planned(plan: MemoryPlan) -> dict[str, int]:
    return {
        "weights_bytes": plan.weights_bytes,
        "kv_bytes": plan.kv_bytes,
        "working_bytes": plan.working_bytes,
        "runtime_bytes": plan.runtime_bytes,
        "peak_bytes": plan.peak_bytes,
    }


def _fill(engine: TransformersEngine, case: Case) -> int:
    """Make all replies at once, event by event; the tokens of prompts and replies in all."""
    words = engine.tokenizer.encode("The keeper lit the lamp at dusk and read until the morning. ")
    prompt = (words * case.prompt_tokens)[: case.prompt_tokens]
    params = SamplingParams(max_tokens=case.reply_tokens, min_tokens=case.reply_tokens)
    running: list[Iterator[EngineEvent]] = [
        engine.generate(prompt, params, conversation_id=str(n)) for n in range(case.replies_at_once)
    ]
    tokens = 0
    while running:
        for events in tuple(running):
            event = next(events, None)
            if event is None:
                running.remove(events)
            elif isinstance(event, Finished):
                tokens += event.usage.prompt_tokens + event.usage.completion_tokens
    return tokens


if __name__ == "__main__":
    main()
