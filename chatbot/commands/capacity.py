"""`capacity`: how many GPUs, replicas and bytes a number of users needs, by arithmetic."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from chatbot.commands.common import add_json
from chatbot.console import Console
from chatbot.engine.capacity import GIB, Capacity, Hardware, Load, cheapest, groups_for
from chatbot.engine.device_memory import parse_bytes
from chatbot.engine.known_models import KNOWN_CONFIGS
from chatbot.engine.memory import CacheKind, Weights
from chatbot.engine.model_figures import figures_of
from chatbot.engine.models import read_config
from chatbot.errors import InputError
from chatbot.settings import Settings

USERS = (10, 1000, 100_000)
MOST_USERS = 10**11
LEAST, MOST = 1e-12, 1e18
"""Of an assumption: sums of numbers beyond could not be told."""
_ABOUT = {
    "active_share": "of all users in the busiest hour",
    "turns_per_hour": "of an active user",
    "turns_per_day": "of any user, stored",
    "prompt_tokens": "of a mean prompt, with its history and passages",
    "reply_tokens": "of a mean reply",
    "cached_share": "of a prompt found in the server's prefix cache",
    "turn_bytes": "of a turn in the database, with its trace",
    "chunks": "of a user's documents",
    "windows_per_chunk": "vectors of a chunk",
    "vector_dimensions": "of the embedding model",
    "memory_bytes": "of a GPU",
    "bandwidth_bytes_s": "of a GPU's memory",
    "flops": "of a GPU in 16 bit, dense",
    "usable_memory": "of a GPU for weights and caches",
    "reached_bandwidth": "of the bandwidth while replies are written",
    "reached_flops": "of the arithmetic while prompts are read",
    "busy_at_most": "of the time, so that few have to wait",
    "slowest_tokens_s": "that each reply still gets",
    "core_s_per_turn": "of the program itself, all but the engine",
    "vectors_per_shard": "of Milvus",
    "spare_groups": "more groups of GPUs than the load needs",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--users", nargs="+", type=int, default=USERS, metavar="N")
    parser.add_argument(
        "--models", nargs="+", metavar="MODEL", help="several models in place of --model"
    )
    parser.add_argument(
        "--assume",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="change an assumption; the output names them all",
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the page as Markdown to this file"
    )
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Nothing is loaded; only the configuration of an unknown hub model is fetched."""
    load, hardware = _assumed(arguments.assume)
    if not all(1 <= users <= MOST_USERS for users in arguments.users):
        raise InputError(f"--users takes whole numbers from 1 to {MOST_USERS:,}.")
    models = arguments.models or [settings.model]
    found = [
        _of(model, arguments.users, settings, load=load, hardware=hardware) for model in models
    ]
    if arguments.json:
        for of in found:
            of["needs"] = [dataclasses.asdict(need) for need in of["needs"]]
        console.json({"assumed": _flat(load, hardware), "models": found})
        return 0
    text = "\n".join(_page(found, load, hardware, _command(arguments, models)))
    if arguments.write:
        arguments.write.write_text(text + "\n", encoding="utf-8")
        console.note(f"Wrote {arguments.write}.")
    else:
        console.result(text)
    return 0


def _of(
    model: str, users: Sequence[int], settings: Settings, *, load: Load, hardware: Hardware
) -> dict[str, Any]:
    config = KNOWN_CONFIGS.get(model)
    if config is None:
        config = read_config(model, cache_dir=settings.cache_dir).config
    figures = figures_of(config)
    weights: Weights = "none" if settings.quantization == "auto" else settings.quantization
    cache: CacheKind = "16bit" if settings.kv_cache_dtype == "auto" else settings.kv_cache_dtype
    groups = groups_for(figures, hardware, load, weights=weights, cache=cache)
    return {
        "model": model,
        "parameters": figures.parameters,
        "weights": weights,
        "cache": cache,
        "needs": [cheapest(n, groups, hardware, load) for n in users],
    }


def _assumed(given: Sequence[str]) -> tuple[Load, Hardware]:
    """The defaults with what was given over them. Raises InputError."""
    load, hardware = Load(), Hardware()
    for text in given:
        name, _, value = text.partition("=")
        if name not in _ABOUT:
            raise InputError(f"--assume takes {', '.join(_ABOUT)}, not {name!r}.")
        if hasattr(load, name):
            number: Any = _number(name, value, getattr(load, name))
            load = dataclasses.replace(load, **{name: number})
        else:
            number = _number(name, value, getattr(hardware, name))
            hardware = dataclasses.replace(hardware, **{name: number})
    return load, hardware


def _number(name: str, value: str, default: float) -> float:
    if name == "memory_bytes":
        return parse_bytes(value)
    try:
        number = float(value)
    except ValueError as error:
        raise InputError(f"--assume {name} takes a number, not {value!r}.") from error
    is_share = name.endswith("share") or name in ("usable_memory", "busy_at_most")
    if not math.isfinite(number) or number < 0 or (number == 0 and name not in _MAY_BE_0):
        raise InputError(f"--assume {name} takes a number above 0, not {value}.")
    if (is_share or name.startswith("reached")) and number > 1:
        raise InputError(f"--assume {name} takes a share from 0 to 1, not {value}.")
    if number and not LEAST <= number <= MOST:
        raise InputError(
            f"--assume {name} takes a number from {LEAST:g} up to {MOST:g}, not {value}."
        )
    if isinstance(default, int) and not number.is_integer():
        raise InputError(f"--assume {name} takes a whole number, not {value}.")
    return int(number) if isinstance(default, int) else number


_MAY_BE_0 = ("cached_share", "spare_groups", "chunks")


def _flat(load: Load, hardware: Hardware) -> dict[str, float]:
    return dataclasses.asdict(load) | dataclasses.asdict(hardware)


def _command(arguments: argparse.Namespace, models: Sequence[str]) -> str:
    words = ["python -m chatbot capacity --models", *models, "--users", *map(str, arguments.users)]
    if arguments.assume:
        words += ["--assume", *arguments.assume]
    if arguments.write:
        words += ["--write", arguments.write.as_posix()]
    return " ".join(words)


def _page(
    found: Sequence[dict[str, Any]], load: Load, hardware: Hardware, command: str
) -> Iterator[str]:
    yield "# Capacity\n"
    yield "Written by a command, from the models' arithmetic; nothing here was measured:"
    yield f"\n    {command}\n"
    for of in found:
        yield from _model(of)
    yield "## What was assumed\n"
    yield "`--assume NAME=VALUE` changes any of it.\n\n| assumption | value | |\n|---|---:|---|"
    for name, value in _flat(load, hardware).items():
        shown = f"{value / GIB:,.6g} GiB" if name == "memory_bytes" else f"{value:,.6g}"
        yield f"| `{name}` | {shown} | {_ABOUT[name]} |"
    yield _HOW


def _model(of: dict[str, Any]) -> Iterator[str]:
    needs: list[Capacity] = of["needs"]
    group = needs[0].group
    bits = {"none": "16-bit", "int8": "8-bit", "int4": "4-bit"}[of["weights"]]
    yield f"## {of['model']}\n"
    yield (
        f"{of['parameters'] / 1e9:.1f} billion parameters, {bits} weights of "
        f"{group.weights_bytes / GIB:.1f} GiB, {group.kv_bytes_per_token / 1024:.0f} KiB of cache "
        f"for a token.\n"
    )
    yield "| | " + " | ".join(f"{need.users:,} users" for need in needs) + " |"
    yield "|---|" + "---:|" * len(needs)
    for label, shown in _ROWS:
        yield f"| {label} | " + " | ".join(shown(need) for need in needs) + " |"
    yield ""


_ROWS: tuple[tuple[str, Callable[[Capacity], str]], ...] = (
    ("turns/s in the busiest hour", lambda n: f"{n.turns_s:,.2f}"),
    ("prompt tokens/s to read (not cached)", lambda n: f"{n.prefill_tokens_s:,.0f}"),
    ("reply tokens/s to write", lambda n: f"{n.decode_tokens_s:,.0f}"),
    ("replies at once, on average", lambda n: f"{n.replies_at_once:,.1f}"),
    ("time to first token, unhindered", lambda n: f"{n.first_token_s * 1000:,.0f} ms"),
    ("GPUs of a group (shards of the weights)", lambda n: f"{n.group.gpus}"),
    ("replies that a group writes at once", lambda n: f"{n.group.batch:,}"),
    ("tokens/s that it writes then", lambda n: f"{n.group.decode_tokens_s:,.0f}"),
    ("groups (copies of the model)", lambda n: f"{n.groups:,}"),
    ("GPUs", lambda n: f"{n.gpus:,}"),
    ("GPU memory for weights", lambda n: f"{n.weights_bytes / GIB:,.0f} GiB"),
    ("GPU memory for caches", lambda n: f"{n.kv_bytes / GIB:,.0f} GiB"),
    ("of that in use, on average", lambda n: f"{n.kv_needed_bytes / GIB:,.1f} GiB"),
    ("replicas of page and API", lambda n: f"{n.app_replicas:,}"),
    ("PostgreSQL grows by a day", lambda n: f"{n.database_bytes_day / 1e9:,.3f} GB"),
    ("vectors in Milvus", lambda n: f"{n.vectors / 1e6:,.3f} million"),
    ("their bytes", lambda n: f"{n.vector_bytes / GIB:,.2f} GiB"),
    ("shards of Milvus", lambda n: f"{n.vector_shards:,}"),
)

_HOW = """
## How it is reckoned

- A group is 1, 2, 4... GPUs whose usable memory holds the weights and at least one reply's cache,
  and which then writes `slowest_tokens_s`; of these, the size with which the fewest GPUs do.
- Reading a token of a prompt takes 2 operations for each parameter; writing one token of every
  reply of a batch takes one pass over all weights and the caches of the batch. The batch is the
  largest that fits and leaves each reply `slowest_tokens_s`.
- The share of time that reading and writing take is summed; so many groups are needed that it
  stays below `busy_at_most`, and `spare_groups` more, so that one may fail or be replaced.
- Replies at once are turns/s times the seconds that one takes (Little's law).
- A replica of the page and the API is one Python process, which serves with about one core.
"""
