"""How long do recall, import and assembly take in long chats? Calls no language model.

    python -m benchmarks.memory_speed [--turns 600] [--assembled-turns 5000] [--json]

`retrieval_ms` is the time of one search by words and by meaning in a chat of `turns` turns, its
question embedded (median); `retrieval_words_ms` the same by words alone. `import_s` is what it
takes until such a chat, given as messages, is stored, folded (extractive summaries) and searchable
by words; `embed_s` what its vectors take in the background after that. `assemble_ms` is the time to
build a prompt without retrieval in a chat of `assembled_turns` turns, read from the store. `cpu`
holds the same figures in processor time of this process, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.vocabulary import llama3_vocabulary
from chatbot.commands.imported import fold_imported
from chatbot.console import Console
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.import_messages import parse_messages
from chatbot.messages import Conversation, RollingSummary
from chatbot.parts import build_embedder
from chatbot.prompting import PromptBuilder
from chatbot.recall_indexes import RecallIndexes
from chatbot.recall_vectors import RecallVectors
from chatbot.settings import Settings, load_settings
from chatbot.store import Store
from retrieval.embed import Embedder, ScriptedEmbedder

WINDOW_TOKENS = 2560
SEARCHES, PROMPTS = 15, 15
VECTOR_LIMIT_TOKENS = 16_000
_THINGS = (
    "garden", "budget", "invoice", "trip", "kitchen", "essay", "server", "recipe", "concert",
    "contract", "marathon", "novel", "lesson", "balcony", "camera", "festival",
)  # fmt: skip
_PLACES = ("Lisbon", "Busan", "Oslo", "Turin", "Leeds", "Daegu", "Graz", "Porto")


@dataclass(slots=True)
class Timing:
    """Seconds of one or more runs, by the clock and of the processor."""

    wall_s: list[float]
    cpu_s: list[float]

    @contextmanager
    def run(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_s.append(time.perf_counter() - wall)
        self.cpu_s.append(time.process_time() - cpu)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=600)
    parser.add_argument("--assembled-turns", type=int, default=5000)
    parser.add_argument("--embedder", choices=("embedded", "scripted"), default="embedded")
    parser.add_argument("--json", action="store_true", help="the default; for symmetry")
    given = parser.parse_args(arguments)
    settings = load_settings(
        {
            "window_tokens": WINDOW_TOKENS,
            "summary": "extractive",
            "tokenizer": str(llama3_vocabulary()),
        }
    )
    embedder = ScriptedEmbedder() if given.embedder == "scripted" else build_embedder(settings)
    print(json.dumps(measured(given.turns, given.assembled_turns, settings, embedder)))
    return 0


def measured(
    turns: int, assembled_turns: int, settings: Settings, embedder: Embedder | None
) -> dict[str, Any]:
    """All figures; see the module."""
    assert settings.tokenizer is not None
    tokenizer = load_tokenizer(settings.tokenizer)
    builder = PromptBuilder(tokenizer, settings, None)
    times: dict[str, Timing] = {}

    def timed(name: str) -> Timing:
        return times.setdefault(name, Timing([], []))

    conversation = _imported(turns, builder, settings, timed)
    _searched(conversation, builder.encoder.count, embedder, timed)
    _assembled(assembled_turns, settings, builder, timed)
    report: dict[str, Any] = {"turns": turns, "assembled_turns": assembled_turns}
    report |= {name: _figure(name, timing.wall_s) for name, timing in times.items()}
    report["cpu"] = {name: _figure(name, timing.cpu_s) for name, timing in times.items()}
    return report


def _figure(name: str, seconds: list[float]) -> float:
    return round(median(seconds) * (1000 if name.endswith("_ms") else 1), 2)


def _imported(
    turns: int, builder: PromptBuilder, settings: Settings, timed: Callable[[str], Timing]
) -> Conversation:
    messages = talk(turns)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Store(Path(folder) / "chats.db")) as store,
        timed("import_s").run(),
    ):
        stored = store.import_conversation(parse_messages(messages))
        folded = fold_imported(
            stored,
            builder,
            settings,
            window_tokens=WINDOW_TOKENS,
            console=Console(io.StringIO(), io.StringIO()),
        )
        builder.build(folded, "What did I say first?", builder.budget(WINDOW_TOKENS))
    return folded


def _searched(
    conversation: Conversation,
    count: Callable[[str], int],
    embedder: Embedder | None,
    timed: Callable[[str], Timing],
) -> None:
    vectors = None if embedder is None else RecallVectors(embedder)
    by_words, by_both = RecallIndexes(count), RecallIndexes(count, vectors)
    if vectors is not None:
        vectors.query("Load the model, which is not part of what is measured.")
        with timed("embed_s").run():
            by_both.embed(conversation, limit_tokens=VECTOR_LIMIT_TOKENS)
    kinds = (("retrieval_words_ms", by_words), ("retrieval_ms", by_both))
    for name, indexes in kinds:
        for number in range(-1, SEARCHES):
            place = _PLACES[number % len(_PLACES)]
            question = f"What did I plan for number {number} and its costs in {place}?"
            timing = timed(name) if number >= 0 else Timing([], [])  # the first one sets up
            with timing.run():
                index = indexes.of(conversation)
                index.match(question, question, len(conversation.turns) // 2)
                index.search(question)


def _assembled(
    turns: int, settings: Settings, builder: PromptBuilder, timed: Callable[[str], Timing]
) -> None:
    plain = PromptBuilder(
        builder.encoder.tokenizer, settings.model_copy(update={"recall_share": 0.0}), None
    )
    budget = plain.budget(WINDOW_TOKENS)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Store(Path(folder) / "chats.db")) as store,
    ):
        stored = store.import_conversation(parse_messages(talk(turns, words=30)))
        summary = RollingSummary("They planned things.", max(turns - 8, 0), 5)
        for number in range(-1, PROMPTS):
            timing = timed("assemble_ms") if number >= 0 else Timing([], [])
            with timing.run():
                conversation = replace(store.load(stored.id), summary=summary)
                plain.build(conversation, f"And what about number {number}?", budget)


def talk(turns: int, words: int = 160) -> list[dict[str, Any]]:
    """A chat as messages, made up, the same every time; replies of about so many words."""
    chance = random.Random(7)
    messages: list[dict[str, Any]] = []
    for number in range(turns):
        thing, place = chance.choice(_THINGS), chance.choice(_PLACES)
        cost = chance.randrange(100, 9000)
        said = (
            f"For the {thing} in {place}, plan {number}, I can spend {cost} dollars. Is it enough?"
        )
        reply: list[str] = []
        while sum(len(sentence.split()) for sentence in reply) < words:
            reply.append(
                f"The {chance.choice(_THINGS)} in {chance.choice(_PLACES)} needs about "
                f"{chance.randrange(10, 900)} hours and a {chance.choice(_THINGS)} to begin with."
            )
        messages += [
            {"id": f"u{number}", "role": "user", "content": said},
            {"id": f"a{number}", "role": "assistant", "content": " ".join(reply)},
        ]
    return messages


if __name__ == "__main__":
    raise SystemExit(main())
