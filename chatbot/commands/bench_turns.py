"""A long conversation with the real model: what is reused, how soon replies start, memory.

Runs in a data folder of its own that is deleted at the end.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from chatbot.chat import Chat, ContextReady, TextDelta, TurnDone
from chatbot.commands.bench_text import messages
from chatbot.commands.bench_watch import LoadLines, WatchedEngine
from chatbot.console import Console
from chatbot.engine.base import Finished, SamplingParams
from chatbot.engine.local import TransformersEngine, load_engine
from chatbot.errors import ChatbotError, InputError
from chatbot.fold_job import FRONT_KINDS
from chatbot.services import Services, build_services
from chatbot.settings import Settings

GREEDY = SamplingParams(temperature=0.0, repetition_penalty=1.0)
REPLY_TOKENS = 64
WINDOW_TOKENS = 2048
TIE_NATS = 0.05
LONG_PROMPT_TOKENS = 1800
NEW_TOKENS = 60
REPEATS = 3


@dataclass(frozen=True, slots=True)
class _Sample:
    """One turn. Seconds are of the wall clock and of this process; `rss_bytes` is after it."""

    first_token_s: float
    first_token_cpu_s: float
    prompt_tokens: int
    cached_tokens: int
    front_tokens: int
    """The part of the prompt that was known before the question: all but what was searched."""
    folded: bool
    recalled_tokens: int
    kv_bytes: int
    rss_bytes: int
    threads: int
    files: int


def measure(arguments: argparse.Namespace, settings: Settings, console: Console) -> dict[str, Any]:
    """The figures of one run; see the keys. Raises InputError for impossible numbers."""
    if arguments.turns < 2 or arguments.check_every < 0:
        raise InputError("Make at least 2 turns, and check every Nth with N at least 0.")
    texts = messages(arguments.conversation)
    own: dict[str, Any] = {
        "embedding_model": "none",
        "window_tokens": settings.window_tokens or WINDOW_TOKENS,
        "reply_tokens": settings.reply_tokens or REPLY_TOKENS,
    }
    settings = settings.model_copy(update=own)
    watched = WatchedEngine(load_engine(settings, LoadLines(console)))
    try:
        figures = _run(arguments, settings, watched, texts, console)
        if arguments.recall_off_too:
            watched.forget_figures()
            without = settings.model_copy(update={"recall_share": 0.0})
            figures["recall_off"] = _run(arguments, without, watched, texts, console)
        return figures
    finally:
        watched.engine.close()


def _run(
    arguments: argparse.Namespace,
    settings: Settings,
    watched: WatchedEngine,
    texts: Sequence[str],
    console: Console,
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = settings.in_folder(Path(folder))
        services = build_services(settings, engine=watched)
        try:
            return _talk(arguments, services, watched, itertools.cycle(texts), console)
        finally:
            services.close()


def _talk(
    arguments: argparse.Namespace,
    services: Services,
    watched: WatchedEngine,
    questions: Iterator[str],
    console: Console,
) -> dict[str, Any]:
    conversation_id = services.store.create_conversation().id
    samples: list[_Sample] = []
    differing: list[dict[str, Any]] = []
    checked = 0
    for number in range(1, arguments.turns + 1):
        samples.append(_turn(services, watched, conversation_id, next(questions)))
        console.progress(f"turn {number} of {arguments.turns}")
        if arguments.check_every and number % arguments.check_every == 0:
            checked += 1
            if found := _compare(watched):
                differing.append({"turn": number, **found})
    details = watched.info.details
    return {
        "turns": len(samples),
        **_ratios(samples),
        "first_token_speedup": _speedup(watched.engine, watched.prompt_ids),
        "checked": checked,
        "mismatches": sum(found["gap"] >= TIE_NATS for found in differing),
        "ties": differing,
        "kv_bytes_max": watched.kv_bytes_max,
        "kv_bytes_bound": details["kv_bytes_bound"],
        "kv_cache_dtype": details["kv_cache_dtype"],
        "attention": details["attention"],
        "dtype": watched.info.dtype,
    }


def _turn(
    services: Services, watched: WatchedEngine, conversation_id: str, question: str
) -> _Sample:
    chat: Chat = services.chat
    before = services.store.load(conversation_id).summary
    wall = cpu = first_wall = first_cpu = 0.0
    for event in chat.reply(conversation_id, question, sampling=GREEDY):
        if isinstance(event, ContextReady):
            wall, cpu = time.perf_counter(), time.process_time()
        elif isinstance(event, TextDelta | TurnDone) and not first_wall:
            first_wall, first_cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert isinstance(event, TurnDone)
    usage, trace = event.turn.usage, event.turn.trace
    assert usage is not None and trace is not None
    if event.turn.finish not in ("stop", "length"):
        why = event.turn.notices[-1].text if event.turn.notices else "no reason was given."
        raise ChatbotError(f"A turn ended as {event.turn.finish}: {why}")
    chat.wait_for_folds()
    process = psutil.Process()
    return _Sample(
        first_token_s=first_wall,
        first_token_cpu_s=first_cpu,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        front_tokens=sum(s.tokens for s in trace.segments if s.kind in FRONT_KINDS),
        folded=services.store.load(conversation_id).summary != before,
        recalled_tokens=sum(s.tokens for s in trace.segments if s.kind == "recalled"),
        kv_bytes=watched.info.details["kv_bytes"],
        rss_bytes=process.memory_info().rss,
        threads=process.num_threads(),
        files=process.num_fds() if hasattr(process, "num_fds") else 0,
    )


def _ratios(samples: list[_Sample]) -> dict[str, Any]:
    """Late turns against early ones: medians of ten around the fifth and at the end."""
    width = min(10, len(samples) // 2)
    early, late = samples[:width], samples[-width:]
    at = min(19, len(samples) // 2)
    start, end = samples[at], samples[-1]
    around = samples[max(0, at - width // 2) : at + width // 2 + 1]
    # A fold replaces the front, so the turn after it has been warmed, not reused.
    plain = [s for previous, s in itertools.pairwise(samples) if not previous.folded]

    def ratio(name: str, first: list[_Sample] = early) -> float:
        ends = [median(getattr(s, name) for s in some) for some in (late, first)]
        return float(round(ends[0] / ends[1], 3))

    return {
        "first_token_ratio": ratio("first_token_s"),
        "first_token_cpu_ratio": ratio("first_token_cpu_s"),
        "first_token_s": round(median(s.first_token_s for s in samples), 3),
        "reused_share": _share(plain, lambda s: s.cached_tokens, lambda s: s.prompt_tokens),
        "reused_share_all": _share(
            samples[1:], lambda s: s.cached_tokens, lambda s: s.prompt_tokens
        ),
        "reused_front_share": _share(
            samples[1:], lambda s: min(s.cached_tokens, s.front_tokens), lambda s: s.front_tokens
        ),
        "recalled_share": _share(samples, lambda s: s.recalled_tokens, lambda s: s.prompt_tokens),
        "turns_with_recall": sum(s.recalled_tokens > 0 for s in samples),
        "folds": sum(s.folded for s in samples),
        "rss_ratio": round(end.rss_bytes / start.rss_bytes, 3),
        "rss_ratio_of_medians": ratio("rss_bytes", around),
        # What is in the caches differs from turn to turn and is bounded by itself.
        "rss_ratio_beside_kv": round(
            (end.rss_bytes - end.kv_bytes) / (start.rss_bytes - start.kv_bytes), 3
        ),
        "rss_bytes": [start.rss_bytes, end.rss_bytes],
        "threads": [start.threads, end.threads],
        "files": [start.files, end.files],
    }


def _share(
    samples: list[_Sample], part: Callable[[_Sample], int], whole: Callable[[_Sample], int]
) -> float | None:
    total = sum(map(whole, samples))
    return round(sum(map(part, samples)) / total, 3) if total else None


def _compare(watched: WatchedEngine) -> dict[str, Any] | None:
    """The last reply against a run without any cache; where they part and by how much."""
    assert watched.last is not None
    # The ids stand for the text, which is encoded anew where a reply was cut inside a character.
    ours, tokens = watched.last.token_ids, watched.last.usage.completion_tokens
    params = SamplingParams(max_tokens=tokens + 1 if watched.last.finish == "stop" else tokens)
    *_, cold = watched.engine.generate(watched.prompt_ids, params)
    assert isinstance(cold, Finished)
    if cold.token_ids == ours:
        return None
    pairs = itertools.zip_longest(cold.token_ids, ours)
    at = next(i for i, (theirs, mine) in enumerate(pairs) if theirs != mine)
    gap = watched.engine.next_token_gap((*watched.prompt_ids, *ours[:at]))
    return {"at": at, "gap": round(gap, 4)}


def _speedup(engine: TransformersEngine, prompt_ids: tuple[int, ...]) -> float:
    """Processor time to the first token of a long prompt: without reuse, over with it."""
    length = min(LONG_PROMPT_TOKENS, engine.info.max_window_tokens - 1)
    ids = tuple(itertools.islice(itertools.cycle(prompt_ids), length))
    one = SamplingParams(max_tokens=1)
    cold, warm = [], []
    for _ in range(REPEATS):
        started = time.process_time()
        list(engine.generate(ids, one))
        cold.append(time.process_time() - started)
        list(engine.generate(ids[:-NEW_TOKENS], one, conversation_id="bench"))
        started = time.process_time()
        list(engine.generate(ids, one, conversation_id="bench"))
        warm.append(time.process_time() - started)
        engine.forget("bench")
    return round(median(cold) / median(warm), 2)
