"""This program's engine beside others on the same work: the time of a turn, decoding, memory.

    python -m benchmarks.peers [--repeats 3] [--text FILE] [--gguf FILE] [--systems ...] [--json]

Each system runs in a process of its own with one thread, one after another, `--repeats` times;
figures are medians of processor time, so that other work on the machine counts little. The peers
are the library's own `generate` in bfloat16 with a fresh cache, and llama.cpp inside the process
with the demo model's own Q4_1 file and a Q8_0 made from it (see requirements-peers.txt).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from chatbot.engine.cache_folder import build_once
from chatbot.engine.embedded import DEMO, demo_gguf
from chatbot.settings import load_settings

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = ("ours", "plain", "q4_1", "q8_0")
NEW_TOKENS, REPLY_TOKENS = 1500, 150
CACHED_TOKENS, DECODED_TOKENS = 2000, 40
MISSING = (
    "llama.cpp is not compared, since llama-cpp-python is missing; install it with: pip install "
    "-r benchmarks/requirements-peers.txt"
)


def main(argv: list[str] | None = None) -> int:
    """Measure, and print a table and the JSON object with all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each system (default: 3)")
    parser.add_argument("--text", type=Path, help="read this text (default: Python's reference)")
    parser.add_argument("--gguf", type=Path, help="the Q4_1 file (default: fetched once)")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--json", action="store_true", help="print the JSON line alone")
    arguments = parser.parse_args(argv)
    systems = list(arguments.systems)
    if importlib.util.find_spec("llama_cpp") is None and {"q4_1", "q8_0"} & set(systems):
        print(MISSING, file=sys.stderr)
        systems = [name for name in systems if name not in ("q4_1", "q8_0")]
    files = _files(systems, arguments.gguf)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in systems}
    for _ in range(max(1, arguments.repeats)):
        for name in systems:
            runs[name].append(_child(name, files.get(name), arguments.text))
            print(f"{name}: {json.dumps(runs[name][-1])}", file=sys.stderr)
    report = summary(runs)
    if not arguments.json:
        for name, figures in report["systems"].items():
            print(f"{name:<6} {figures}")
    print(json.dumps(report))
    return 0


def summary(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Medians of each system, and the ratios; None where a system was not run."""
    systems = {
        name: {key: median(run[key] for run in some) for key in some[0]}
        for name, some in runs.items()
        if some
    }

    def ratio(key: str, over: str, under: str) -> float | None:
        if over not in systems or under not in systems:
            return None
        return round(systems[over][key] / systems[under][key], 3)

    return {
        "rag_turn_vs_q4_1": ratio("turn_s", "ours", "q4_1"),
        "rag_turn_vs_q8_0": ratio("turn_s", "ours", "q8_0"),
        "decode_vs_plain": ratio("decode_token_s", "plain", "ours"),
        "rss_vs_plain": ratio("peak_bytes", "ours", "plain"),
        "new_tokens": NEW_TOKENS,
        "reply_tokens": REPLY_TOKENS,
        "cached_tokens": CACHED_TOKENS,
        "systems": systems,
    }


def _files(systems: list[str], gguf: Path | None) -> dict[str, Path]:
    """The GGUF files that are needed; Q8_0 is made once and kept in the cache folder."""
    if not {"q4_1", "q8_0"} & set(systems):
        return {}
    cache = load_settings().cache_dir
    source = gguf or demo_gguf(cache, progress=lambda text, share: None)

    def make(folder: Path) -> None:
        # In a process of its own, for it writes a line for each tensor.
        code = "import sys; from benchmarks.peers import quantize; quantize(*sys.argv[1:])"
        command = [sys.executable, "-c", code, str(source), str(folder / "model.gguf")]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)

    # Made from the package's file, whatever name it has here.
    target = cache / "models" / "SmolLM2-135M-Instruct-Q8_0"
    recipe = f"{DEMO.sha256[:16]}-q8_0"
    made = build_once(target, recipe=recipe, build=make, needed_bytes=200_000_000)
    return {"q4_1": source, "q8_0": made / "model.gguf"}


def quantize(source: str, target: str) -> None:
    """Write a model anew in Q8_0."""
    import llama_cpp

    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0
    options.allow_requantize = True
    options.nthread = 1
    code = llama_cpp.llama_model_quantize(source.encode(), target.encode(), options)
    if code != 0:
        raise SystemExit(f"llama.cpp could not write {target} (code {code}).")


def _child(name: str, file: Path | None, text: Path | None) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.peers_child", name]
    command += ["--file", str(file)] if file else []
    command += ["--text", str(text)] if text else []
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **one, "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise SystemExit(f"{name} could not be measured: {last}")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
