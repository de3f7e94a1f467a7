"""Are facts that were said in passing in the prompt of the question that needs them, much later?

    python -m benchmarks.planted_facts [--json] [--summaries bad|demo|...] [--facts first|held]
        [--short] [--first-seed N --seeds N] [--data ../shared/data]

Each seed is two long chats in each language: eight facts of different kinds, each said beside one
of 60 filler turns of real talk (BEAM chats in English, KorQuAD questions in Korean), then asked for
in other words. In the second chat every fact is corrected later on. Turns are stored and folded as
in a chat; the whole prompt has 2,048 Llama 3 tokens. `present` counts values that stand in the
prompt of their question; `corrected_present` those where the new value stands there and is marked
as newer: by the program's own note, or by the user's correction word for word behind the old line.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.planted_chats import FACTS, LANGUAGES, Chat, Planted, Source, chats
from benchmarks.summarisers import SUMMARISERS, Summarise
from benchmarks.vocabulary import llama3_vocabulary
from chatbot.engine.base import ChatTokenizer
from chatbot.engine.scripted import ScriptedEngine
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.fold_job import FoldJob
from chatbot.fold_types import CallModel
from chatbot.messages import Message, PromptTrace
from chatbot.prompting import PromptBuilder
from chatbot.records import new_id
from chatbot.settings import Settings
from chatbot.store import Store

PROMPT_TOKENS, REPLY_TOKENS = 2048, 512
MARKS = ("moved from", "changed from", "before:", "later:", "바뀜", "이전:", "나중에:")
"""By which the program's notes say that a value is newer than another one in the same line."""
DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@dataclass
class Figures:
    """What came out for one language."""

    facts: int = 0
    present: int = 0
    corrected: int = 0
    corrected_present: int = 0
    folds: int = 0
    fewest_folds: int | None = None
    model_summaries: int = 0
    over_budget: int = 0
    missing: list[dict[str, Any]] = field(default_factory=list)


class _Job(FoldJob):
    """A fold whose summaries come from the benchmark."""

    summarise: Summarise

    def _ask(self, stop: threading.Event) -> CallModel:
        return self.summarise


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with memory/ and qa/")
    parser.add_argument("--tokenizer", type=Path, default=None, help="default: Llama 3's")
    parser.add_argument("--summaries", choices=sorted(SUMMARISERS), default="bad")
    parser.add_argument("--facts", choices=sorted(FACTS), default="first")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="to run the seeds in parts")
    parser.add_argument("--short", action="store_true", help="short English filler (XQuAD) too")
    parser.add_argument("--turns", type=int, default=60, help="filler turns of a chat")
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="default: both")
    parser.add_argument("--json", action="store_true", help="the default; for symmetry")
    given = parser.parse_args(arguments)
    if not given.data.is_dir():
        raise SystemExit(f"The measuring data is not in {given.data}; say where with --data.")
    tokenizer = load_tokenizer(given.tokenizer or llama3_vocabulary())
    source = Source(given.data, given.facts, given.short)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    report: dict[str, Any] = {"summaries": given.summaries, "facts": given.facts}
    with closing(SUMMARISERS[given.summaries]()) as summarise:
        for language in given.language or LANGUAGES:
            figures = Figures()
            for chat in chats(source, language, seeds=seeds, turns=given.turns):
                measure(chat, tokenizer, summarise, figures)
                so_far = f"{figures.present} of {figures.facts} present"
                so_far += f", {figures.corrected_present} of {figures.corrected} corrected"
                print(f"{language} {chat.name}: {so_far}", file=sys.stderr, flush=True)
            report[language] = vars(figures)
    print(json.dumps(report, ensure_ascii=False))
    return 0


def measure(chat: Chat, tokenizer: ChatTokenizer, summarise: Summarise, figures: Figures) -> None:
    """Talk, fold, and ask for every fact at the end."""
    window = PROMPT_TOKENS + REPLY_TOKENS
    with (
        tempfile.TemporaryDirectory(prefix="planted-facts-") as folder,
        closing(Store(Path(folder) / "chats.db")) as store,
    ):
        settings = Settings(
            data_dir=Path(folder), window_tokens=window, reply_tokens=REPLY_TOKENS,
            embedding_model="none",
        )  # fmt: skip
        builder = PromptBuilder(tokenizer, settings, None)
        job = _Job(
            settings, store, ScriptedEngine(), builder=lambda: builder, window=lambda: window
        )
        job.summarise = summarise
        conversation_id = store.create_conversation().id
        for user, reply in chat.turns:
            turn = store.begin_turn(conversation_id, user)
            answer = (Message(new_id(), "assistant", reply),)
            store.finish_turn(conversation_id, replace(turn, assistant=answer, finish="stop"))
            while job(conversation_id, threading.Event()):
                pass
        conversation = store.load(conversation_id)
        versions = store.summary_versions(conversation_id)
        figures.folds += len(versions)
        figures.fewest_folds = min(len(versions), figures.fewest_folds or len(versions))
        figures.model_summaries += sum(v.origin == "model" for v in versions)
        for planted in chat.planted:
            trace = builder.build(conversation, planted.question, builder.budget(window)).trace
            judge(chat, planted, trace, figures)


def judge(chat: Chat, planted: Planted, trace: PromptTrace, figures: Figures) -> None:
    """Add one question to the figures."""
    figures.over_budget += trace.prompt_tokens > PROMPT_TOKENS
    texts = [s.text for s in trace.segments if s.kind not in ("system", "question")]
    if planted.change is None:
        figures.facts += 1
        good = any(planted.value in text for text in texts)
        figures.present += good
    else:
        figures.corrected += 1
        good = is_marked(planted, "\n".join(texts))
        figures.corrected_present += good
    if not good:
        found = [t[:60] for t in texts if planted.value in t]
        figures.missing.append(
            {"chat": chat.name, "kind": planted.kind, "said": planted.said,
             "change": planted.change, "question": planted.question, "found": found}
        )  # fmt: skip


def is_marked(planted: Planted, text: str) -> bool:
    """Whether a prompt says that the new value is the newer one."""
    assert planted.change is not None
    if planted.value not in text:
        return False
    lines = [line for line in text.splitlines() if planted.value in line and planted.old in line]
    if any(mark in line for line in lines for mark in MARKS):
        return True
    old_at, new_at = text.rfind(planted.said), text.rfind(planted.change)
    return new_at >= 0 and (old_at < new_at or planted.old not in text[new_at:])


if __name__ == "__main__":
    raise SystemExit(main())
