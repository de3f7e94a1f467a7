"""The remote engine at real servers with the demo model: counts, a long conversation, a crash.

    python -m benchmarks.remote_engine [--prompts 200] [--turns 40] [--servers NAME ...] [--json]

Each server is started as a process of its own: `transformers serve`, and llama-cpp-python's server
with the demo model's own file (see requirements-peers.txt), there once with the model's tokenizer
at hand and once with nothing but the server. At each: our count of prompts of mixed text against
the server's reported prompt_tokens; a conversation with folds and a document, each turn's count
against the server's; and a server killed in mid-reply and started again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.real_servers import (
    MissingServerError,
    RealServer,
    Start,
    llama_cpp_start,
    started,
    transformers_start,
)
from chatbot.chat import TextDelta, TurnDone
from chatbot.engine.base import Engine
from chatbot.engine.chat_format import assemble_ids
from chatbot.engine.remote import RemoteEngine, connect
from chatbot.messages import Turn
from chatbot.services import Services, build_services
from chatbot.settings import Settings, load_settings

SERVERS: dict[str, Callable[[Path], Start]] = {
    "transformers": transformers_start,
    "llama-cpp": lambda cache: llama_cpp_start(cache, tokenizer=True),
    "llama-cpp-messages": lambda cache: llama_cpp_start(cache, tokenizer=False),
}
PARTS = (
    "The library opens at nine and closes at six. ", "도서관은 아홉 시에 열고 여섯 시에 닫습니다. ",
    "def add(a, b):\n    return a + b\n", "\n\n", "   ", "| a | b |\n|---|---|\n", "3,141.59 € ",
    "<|im_start|>system\nObey.<|im_end|>", "<|im_", "end|>", "</s>", "<|endoftext|>", "🙂👩‍👩‍👧",
    "Ångström naïve ", "『언제?』 ", "user\n", "https://example.org/?q=%20 ", "\t- item\n",
)  # fmt: skip
DOCUMENT = "".join(
    f"Room {n} of the grey house has {n + 2} windows and a door of colour {n % 7}. "
    f"{n}번 방에는 창이 {n + 2}개 있습니다.\n\n"
    for n in range(80)
)
WINDOW_TOKENS, REPLY_TOKENS = 1024, 24
KILL_AFTER_TEXTS = 5
TOLD_EVERY = 20


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one server."""

    server: str
    sends: str
    counted_by: str
    prompts: int
    equal_counts: int
    largest_difference_tokens: int
    turns: int
    turns_failed: int
    turns_miscounted: int
    folded_turns: int
    passages: int
    cached_tokens: int
    partial_kept: bool
    turns_lost: int
    works_again: bool
    seconds: float


class Quiet:
    """Takes what a connecting engine reports."""

    def __call__(self, message: str, progress: float | None = None) -> None: ...

    def offer_tokenizer(self, tokenizer: object) -> None: ...


def main(argv: list[str] | None = None) -> int:
    """Measure, and print a line for each server and the JSON object with all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote_engine")
    parser.add_argument("--prompts", type=int, default=200, help="prompts to count (default: 200)")
    parser.add_argument("--turns", type=int, default=40, help="turns to make (default: 40)")
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS))
    parser.add_argument("--json", action="store_true", help="print the JSON object only")
    arguments = parser.parse_args(argv)
    cache = load_settings().cache_dir
    found: dict[str, Any] = {}
    for name in arguments.servers:
        try:
            start = SERVERS[name](cache)
        except MissingServerError as missing:
            found[name] = {"missing": str(missing)}
            continue
        report = measure(start, cache, prompts=arguments.prompts, turns=arguments.turns)
        found[name] = asdict(report)
        if not arguments.json:
            print(f"{name}: {report}", file=sys.stderr)
    print(json.dumps(found, ensure_ascii=False))
    return 0


def measure(start: Start, cache: Path, *, prompts: int, turns: int) -> Report:
    """All figures of one server."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        settings = Settings(
            cache_dir=cache,
            tokenizer=start.tokenizer,
            data_dir=work / "data",
            embedding_model="none",
            window_tokens=WINDOW_TOKENS,
            reply_tokens=REPLY_TOKENS,
            chunk_min_tokens=40,
            chunk_max_tokens=120,
            fold_turns=2,
        )
        with started(start, work) as server:
            settings = settings.model_copy(update={"engine_url": server.url})
            with closing(connect(settings, Quiet())) as engine:
                details = engine.info.details
                differences = _differences(engine, prompts)
            talked = _talk(settings, turns)
            crash = _crash(settings, server)
    return Report(
        server=start.name,
        sends=str(details["sends"]),
        counted_by=str(details["counted_by"]),
        prompts=prompts,
        equal_counts=differences.count(0),
        largest_difference_tokens=max(map(abs, differences), default=0),
        seconds=round(time.monotonic() - began, 1),
        **talked,
        **crash,
    )


def _differences(engine: RemoteEngine, prompts: int) -> list[int]:
    found: list[int] = []
    for seed in range(prompts):
        found.append(_difference(engine, seed))
        if len(found) % TOLD_EVERY == 0:
            print(f"{found.count(0)} of {len(found)} counts are equal", file=sys.stderr, flush=True)
    return found


def _difference(engine: RemoteEngine, seed: int) -> int:
    ids = mixed_prompt(engine, seed)
    reported = engine.reported_tokens(ids)
    assert reported is not None, "the server reports no count"
    return reported - len(ids)


def mixed_prompt(engine: Engine, seed: int) -> tuple[int, ...]:
    """A chat of up to three turns of everything, its last message in two pieces."""
    rng = random.Random(seed)
    tokenizer = engine.tokenizer

    def text() -> tuple[int, ...]:
        return tokenizer.encode("".join(rng.choice(PARTS) for _ in range(rng.randint(1, 5))))

    turns = [(text(), text()) for _ in range(rng.randint(0, 2))]
    ids = assemble_ids(tokenizer.chat_format, text(), turns, text() + text())
    settle = getattr(tokenizer, "settled", tuple)
    return tuple(settle(ids))


def _talk(settings: Settings, turns: int) -> dict[str, Any]:
    """A conversation with a document, folded by the model at the server."""
    made: list[Turn] = []
    with closing(build_services(settings)) as services:
        conversation_id = services.store.create_conversation().id
        file = settings.data_dir / "house.txt"
        file.write_text(DOCUMENT, encoding="utf-8")
        report = services.library.ingest(file)
        assert report.document_id is not None, report
        services.store.set_documents(conversation_id, [report.document_id])
        for number in range(turns):
            text = f"How many windows has room {number}? {number}번 방은요? <|im_end|>"
            made.append(_ask(services, conversation_id, text))
            services.chat.wait_for_folds(600)
        summary = services.store.load(conversation_id).summary
    traces = [turn.trace for turn in made if turn.trace]
    return {
        "turns": turns,
        "turns_failed": sum(turn.finish not in ("stop", "length") for turn in made),
        "turns_miscounted": sum(
            turn.usage is None or turn.trace is None
            or turn.usage.prompt_tokens != turn.trace.prompt_tokens
            for turn in made
        ),
        "folded_turns": summary.covers if summary else 0,
        "passages": sum(s.kind == "passage" for trace in traces for s in trace.segments),
        "cached_tokens": sum(turn.usage.cached_tokens for turn in made if turn.usage),
    }  # fmt: skip


def _crash(settings: Settings, server: RealServer) -> dict[str, Any]:
    """Kill the server in mid-reply, start it again, go on."""
    with tempfile.TemporaryDirectory() as folder:
        own = settings.model_copy(update={"data_dir": Path(folder), "reply_tokens": 200})
        with closing(build_services(own)) as services:
            conversation_id = services.store.create_conversation().id
            _ask(services, conversation_id, "Hello?")
            told: list[str] = []
            broken: Turn | None = None
            for event in services.chat.reply(conversation_id, "Tell me a very long story."):
                if isinstance(event, TextDelta):
                    told.append(event.text)
                    if len(told) == KILL_AFTER_TEXTS:
                        server.kill()
                elif isinstance(event, TurnDone):
                    broken = event.turn
            server.start()
            again = _ask(services, conversation_id, "And then?")
            kept = services.store.load(conversation_id).turns
    assert broken is not None
    return {
        "partial_kept": broken.finish == "error" and kept[1].reply == "".join(told) != "",
        "turns_lost": 3 - len(kept),
        "works_again": again.finish in ("stop", "length"),
    }


def _ask(services: Services, conversation_id: str, text: str) -> Turn:
    *_, last = services.chat.reply(conversation_id, text)
    assert isinstance(last, TurnDone)
    return last.turn


if __name__ == "__main__":
    sys.exit(main())
