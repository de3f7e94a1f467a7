"""One system of `benchmarks.peers` in a process of its own; prints its figures as one JSON line."""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import CACHED_TOKENS, DECODED_TOKENS, NEW_TOKENS, REPLY_TOKENS
from chatbot.commands.bench_text import sentences
from chatbot.settings import load_settings

WARM_TOKENS = 64
Generate = Callable[[Sequence[int], int], list[float]]
"""Reads a prompt with nothing kept and makes so many tokens, greedily and without an end; gives
the processor time at the start and after each token."""


def main() -> int:
    """Measure the system that is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("system")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--text", type=Path)
    arguments = parser.parse_args()
    text = arguments.text.read_text(encoding="utf-8") if arguments.text else " ".join(sentences())
    system = arguments.system
    make = ours if system == "ours" else plain if system == "plain" else llama_cpp
    generate, encode = make(arguments.file)
    # The same tokens for all; the vocabularies are one.
    ids = list(itertools.islice(itertools.cycle(encode(text[:40_000])), CACHED_TOKENS))
    generate(ids[:WARM_TOKENS], 4)
    turn = generate(ids[:NEW_TOKENS], REPLY_TOKENS)
    decode = generate(ids, DECODED_TOKENS + 1)
    figures = {
        "turn_s": turn[-1] - turn[0],
        "first_token_s": turn[1] - turn[0],
        "decode_token_s": (decode[-1] - decode[1]) / DECODED_TOKENS,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _rss_unit(),
    }
    print(json.dumps({key: round(value, 5) for key, value in figures.items()}))
    return 0


def ours(_: Path | None) -> tuple[Generate, Any]:
    """This program's engine: the way of a reply, without the end token.

    Without what is around it, which would start the count of the peak anew after the load.
    """
    from chatbot.engine.cache_folder import ignore_progress
    from chatbot.engine.decode import Reader
    from chatbot.engine.kv_cache import new_cache
    from chatbot.engine.loading import load_files, load_model
    from chatbot.engine.tokenizers import load_tokenizer

    settings = load_settings({"threads": 1})
    files, plan = load_files(settings, ignore_progress)
    loaded = load_model(settings, files, plan, ignore_progress)

    def generate(prompt: Sequence[int], tokens: int) -> list[float]:
        times = [time.process_time()]
        reader = Reader(loaded.model, new_cache(loaded.model, plan.cache), ())
        *_, (_, logits) = reader.prefill(prompt, piece_tokens=loaded.piece_tokens)
        times.append(_after(int(logits.argmax())))
        for _ in range(tokens - 1):
            logits = reader.read((int(logits.argmax()),))
            times.append(_after(int(logits.argmax())))
        return times

    return generate, load_tokenizer(files.folder).encode


def plain(_: Path | None) -> tuple[Generate, Any]:
    """The library's `generate` in bfloat16 with the cache that it makes itself."""
    import torch
    from transformers import AutoModelForCausalLM, LogitsProcessorList

    from chatbot.engine.models import locate
    from chatbot.engine.tokenizers import load_tokenizer

    settings = load_settings()
    torch.set_num_threads(1)
    folder = locate("demo", cache_dir=settings.cache_dir, progress=lambda text, share: None).folder
    model: Any = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.bfloat16).eval()

    def generate(prompt: Sequence[int], tokens: int) -> list[float]:
        times = [time.process_time()]

        def note(ids: Any, scores: Any) -> Any:
            times.append(time.process_time())
            return scores

        with torch.inference_mode():
            model.generate(
                torch.tensor([list(prompt)]),
                do_sample=False,
                min_new_tokens=tokens,
                max_new_tokens=tokens,
                logits_processor=LogitsProcessorList([note]),
                pad_token_id=model.config.eos_token_id,
            )
        return times

    return generate, load_tokenizer(folder).encode


def llama_cpp(file: Path | None) -> tuple[Generate, Any]:
    """llama.cpp in this process, with its defaults beside one thread and greedy choice."""
    from llama_cpp import Llama

    model = Llama(
        str(file),
        n_ctx=CACHED_TOKENS + REPLY_TOKENS,
        n_threads=1,
        n_threads_batch=1,
        logits_all=False,
        verbose=False,
    )

    def generate(prompt: Sequence[int], tokens: int) -> list[float]:
        times = [time.process_time()]
        model.reset()
        model.eval(list(prompt))
        for number in range(tokens):
            token = model.sample(temp=0.0)
            times.append(_after(token))
            if number + 1 < tokens:
                model.eval([token])
        return times

    def encode(text: str) -> list[int]:
        return list(model.tokenize(text.encode(), add_bos=False, special=False))

    return generate, encode


def _after(token: int) -> float:
    """The time now, when the token is known."""
    return time.process_time()


def _rss_unit() -> int:
    return 1 if sys.platform == "darwin" else 1024


if __name__ == "__main__":
    sys.exit(main())
