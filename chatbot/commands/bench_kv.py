"""Kinds of cache and of weights beside each other: bytes, speed, and what is lost of the text.

Everything is read by the same model in one process. Times are of this process; a token's is the
median of many, taken in turns, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from chatbot.commands.bench_engine import OpenEngine, open_engine
from chatbot.commands.bench_long_prompts import long_prompts
from chatbot.commands.bench_text import sentences
from chatbot.commands.columns import columns
from chatbot.commands.text_score import Score, score
from chatbot.console import Console
from chatbot.engine.base import ChatTokenizer
from chatbot.engine.decode import Reader
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.memory import CacheKind, kv_bytes_per_token
from chatbot.engine.process_memory import process_bytes, process_peak_bytes, reset_peak
from chatbot.errors import InputError
from chatbot.settings import Settings

CACHED_TOKENS = 2000
ROUNDS, ROUND_TOKENS = 7, 12
LEAST_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Policy:
    """A way of keeping caches. More may be added to POLICIES; all are compared with the first."""

    cache: CacheKind


POLICIES: Mapping[str, Policy] = {
    "16bit": Policy("16bit"),
    "int8": Policy("int8"),
    "int4": Policy("int4"),
}


def measure(arguments: argparse.Namespace, settings: Settings, console: Console) -> dict[str, Any]:
    """Figures of each policy against the first. Raises InputError for too few tokens."""
    if arguments.tokens < LEAST_TOKENS:
        raise InputError(f"Read at least {LEAST_TOKENS} tokens; raise --tokens.")
    settings = settings.model_copy(
        update={"kv_cache_dtype": "auto", "threads": settings.threads or 1}
    )
    opened = open_engine(settings, console)
    ids = text_ids(opened.engine.tokenizer, arguments.text, arguments.tokens)
    policies = _policies(opened, ids, console)
    weights = opened.loaded.plan.weights
    report = {
        "policies": policies,
        "long_prompts": long_prompts(opened.model, ids, opened.loaded.piece_tokens),
        "weights": weights,
        "tokens": len(ids),
        "cached_tokens": CACHED_TOKENS,
        "attention": opened.engine.info.details["attention"],
        "dtype": opened.engine.info.dtype,
        "direct_caches": opened.engine.info.details["direct_caches"],
    }
    if weights != "none":
        ours = score(opened.model, ids, "16bit")
        opened.engine.close()
        report["weights_against_none"] = _unpacked(settings, ids, ours, console)
    _show(policies, console)
    return report


def text_ids(tokenizer: ChatTokenizer, path: Any, tokens: int) -> tuple[int, ...]:
    """The first tokens of a file, or of Python's language reference, which is on every machine."""
    text = path.read_text(encoding="utf-8") if path else " ".join(sentences())
    ids = tokenizer.encode(text)[:tokens]
    if len(ids) < LEAST_TOKENS:
        raise InputError(f"{path} has {len(ids)} tokens; choose a longer text.")
    return ids


def _policies(opened: OpenEngine, ids: Sequence[int], console: Console) -> dict[str, Any]:
    speeds = _speeds(opened, ids, console)
    found: dict[str, Any] = {}
    first: Score | None = None
    for name, policy in POLICIES.items():
        console.progress(f"{name}: reading {len(ids)} tokens")
        scored = score(opened.model, ids, policy.cache)
        first = first or scored
        per_token = kv_bytes_per_token(opened.loaded.figures, policy.cache)
        sixteen = kv_bytes_per_token(opened.loaded.figures, "16bit")
        found[name] = {
            "bytes_per_token": per_token,
            "bytes_ratio": round(per_token / sixteen, 4),
            "perplexity": round(scored.perplexity, 4),
            "perplexity_change": round(scored.perplexity / first.perplexity - 1, 5),
            "top1_agreement": round(scored.agreement(first), 4),
            **speeds[name],
        }
    return found


def _speeds(opened: OpenEngine, ids: Sequence[int], console: Console) -> dict[str, Any]:
    """First token, bytes and peak of each policy, and the time of a token in turns."""
    prompt = tuple(itertools.islice(itertools.cycle(ids), CACHED_TOKENS))
    readers, found, times = {}, {}, {}
    for name, policy in POLICIES.items():
        console.progress(f"{name}: a prompt of {CACHED_TOKENS} tokens")
        before = process_bytes() if reset_peak() else 0
        reader = Reader(opened.model, new_cache(opened.model, policy.cache), ())
        started = time.process_time()
        for _ in reader.prefill(prompt, piece_tokens=opened.loaded.piece_tokens):
            pass
        found[name] = {
            "first_token_s": round(time.process_time() - started, 3),
            "cache_bytes": cache_bytes(reader.cache),
            "peak_bytes": max(0, process_peak_bytes() - before) if before else 0,
        }
        readers[name], times[name] = reader, list[float]()
    for number, name in itertools.product(range(ROUNDS), POLICIES):
        console.progress(f"{name}: decoding, round {number + 1} of {ROUNDS}")
        for token in prompt[:ROUND_TOKENS]:
            started = time.process_time()
            readers[name].read((token,))
            times[name].append(time.process_time() - started)
    base = median(times[next(iter(POLICIES))])
    for name, seconds in times.items():
        found[name] |= {
            "decode_tokens_per_s": round(1 / median(seconds), 2),
            "decode_ratio": round(base / median(seconds), 3),
        }
    return found


def _unpacked(
    settings: Settings, ids: Sequence[int], ours: Score, console: Console
) -> dict[str, Any]:
    """What the packed weights lose against those of the file, in the type that is computed in."""
    plain = open_engine(settings.model_copy(update={"quantization": "none"}), console)
    console.progress(f"unpacked weights: reading {len(ids)} tokens")
    theirs = score(plain.model, ids, "16bit")
    plain.engine.close()
    return {
        "perplexity": round(theirs.perplexity, 4),
        "perplexity_change": round(ours.perplexity / theirs.perplexity - 1, 5),
        "top1_agreement": round(ours.agreement(theirs), 4),
    }


def _show(policies: dict[str, Any], console: Console) -> None:
    keys = (
        ("bytes_ratio", "bytes"),
        ("perplexity", "perplexity"),
        ("perplexity_change", "change"),
        ("top1_agreement", "top 1"),
        ("first_token_s", "first, s"),
        ("decode_tokens_per_s", "tokens/s"),
        ("decode_ratio", "decode"),
    )
    rows = [[name, *(str(row[key]) for key, _ in keys)] for name, row in policies.items()]
    console.result(columns(["cache", *(title for _, title in keys)], rows))
