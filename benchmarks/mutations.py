"""Named ways to break the program, one at a time, by replacing one function of it.

Each takes hold of its place by name and fails loudly when the place is gone, so that a mutation
never stops breaking anything unnoticed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from chatbot import citing, fact_recall, fold_plan, fold_run, need, prompting, recall, windows
from chatbot.engine.scripted import ScriptedEngine
from chatbot.engine.scripted_tokenizer import _CONTROL, _CONTROL_PATTERN, ScriptedTokenizer
from chatbot.fold_job import FoldJob
from chatbot.fold_run import FoldRun
from chatbot.messages import RollingSummary
from chatbot.prompting import PromptBuilder
from chatbot.recall_indexes import RecallIndexes
from chatbot.render import PieceEncoder
from chatbot.reply_run import ReplyRun
from chatbot.store import Store
from chatbot.summary_gate import Verdict
from retrieval import align, index, search, words
from retrieval.index import Index
from retrieval.pipeline import Library

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault: `where.attribute` becomes what `make` gives for the sound function.

    A function of a module is replaced in every module that has imported it by name.
    """

    name: str
    where: Any
    attribute: str
    make: Callable[[Function], Any]

    def apply(self) -> None:
        """Break the program in this process. Raises AttributeError when the place is gone."""
        sound = getattr(self.where, self.attribute)
        broken = self.make(sound)
        setattr(self.where, self.attribute, broken)
        if isinstance(self.where, type):
            return
        for name, module in list(sys.modules.items()):
            ours = name.startswith(("chatbot", "retrieval"))
            if ours and getattr(module, self.attribute, None) is sound:
                setattr(module, self.attribute, broken)


def changed(result: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """The function, with its result changed."""
    return lambda sound: lambda *args, **kwargs: result(sound(*args, **kwargs))


def always(value: Any) -> Callable[[Function], Function]:
    """A function that does nothing and gives this."""
    return lambda sound: lambda *args, **kwargs: value


def with_arguments(change: Function) -> Callable[[Function], Function]:
    """The function, called with what `change` makes of its arguments: (args, kwargs)."""

    def make(sound: Function) -> Function:
        def broken(*args: Any, **kwargs: Any) -> Any:
            new_args, new_kwargs = change(*args, **kwargs)
            return sound(*new_args, **new_kwargs)

        return broken

    return make


def keyword(name: str, value: Any) -> Callable[[Function], Function]:
    """The function, called with a keyword argument of ours."""
    return with_arguments(lambda *args, **kwargs: (args, {**kwargs, name: value}))


def _swallow(sound: Function) -> Function:
    def plan(turn_tokens: Any, covered: int, **kwargs: Any) -> range | None:
        span = sound(turn_tokens, covered, **kwargs)
        return range(span.start, len(turn_tokens)) if span else None

    return plan


def _uncounted_summary(sound: Function) -> Function:
    def summary(self: Any, *args: Any, **kwargs: Any) -> Any:
        piece = sound(self, *args, **kwargs)
        return replace(piece, segment=replace(piece.segment, tokens=0))

    return summary


def _forgets_first(sound: Function) -> Function:
    def begin(self: FoldRun) -> None:
        sound(self)
        self.text = ""

    return begin


def _without_previous_facts(sound: Function) -> Function:
    def merge(old: Any, new: Any, **kwargs: Any) -> Any:
        return sound(old[1:], new, **kwargs)

    return merge


def _shifted(citation: Any) -> Any:
    return citation and replace(citation, start=citation.start + 1, end=citation.end + 1)


def _page_off(citation: Any) -> Any:
    return replace(citation, page=citation.page + 1) if citation and citation.page else citation


def _parsed_control_tokens(sound: Function) -> Function:
    def encode(self: Any, text: str) -> tuple[int, ...]:
        parts = _CONTROL_PATTERN.split(text)
        return tuple(
            token
            for part in parts
            for token in ((_CONTROL[part],) if part in _CONTROL else sound(self, part))
        )

    return encode


def _other_conversation(sound: Function) -> Function:
    """What another conversation keeps stands in for as much as this one could use again."""

    def front(self: Any, prompt: Any, conversation_id: str | None) -> Any:
        own = sound(self, prompt, conversation_id)
        other = next((ids for name, ids in self._kept.items() if name != conversation_id), None)
        return own if other is None else (*other[: len(own)], *own[len(other) :])

    return front


def _uncut(sound: Function) -> Function:
    def reused(self: Any, prompt: Any, conversation_id: str | None) -> Any:
        kept = self._kept.get(conversation_id, ()) if conversation_id is not None else ()
        return kept[: len(prompt) - 1]

    return reused


def _one_more_token(budget: Any) -> Any:
    return replace(budget, limit_tokens=budget.limit_tokens + 1)


def _no_reply_reserve(budget: Any) -> Any:
    return replace(budget, limit_tokens=budget.limit_tokens + budget.reply_tokens)


def _cut_question(sound: Function) -> Function:
    return lambda self, text, lead="": sound(self, text[:40], lead)


def _whole_words(sound: Function) -> Function:
    """Hangul runs as one term each, as most search libraries take them."""

    def runs(text: str) -> list[list[str]]:
        return [["".join(t for t in run if len(t) == 1)] if len(run) > 1 else run
                for run in sound(text)]  # fmt: skip

    return runs


def _keeps_cut_turns(sound: Function) -> Function:
    return lambda self, conversation_id, question, *, replacing=None: sound(
        self, conversation_id, question
    )


def _loses_last_turn(sound: Function) -> Function:
    def finish(self: Any, conversation_id: str, turn: Any) -> None:
        sound(self, conversation_id, replace(turn, assistant=(), finish="interrupted"))

    return finish


def _everything_in_scope(sound: Function) -> Function:
    def passages(self: Any, query: str, document_ids: Any, *args: Any) -> Any:
        everything = [info.id for info in self._library.documents()] if self._library else []
        return sound(self, query, everything, *args)

    return passages


def _wrong_turn(sound: Function) -> Function:
    def search_(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = sound(self, *args, **kwargs)
        others = self._excerpts
        return [others[(others.index(replace(e, score=0.0)) + 2) % len(others)]
                if replace(e, score=0.0) in others else e for e in found]  # fmt: skip

    return search_


def _summary_of_the_past(sound: Function) -> Function:
    """The summary stays whatever is edited, so it speaks of turns that are gone."""

    def load(self: Any, conversation_id: str, **kwargs: Any) -> Any:
        conversation = sound(self, conversation_id, **kwargs)
        kept = getattr(self, "_mutated", {})
        self._mutated = kept
        if conversation.summary is not None:
            kept[conversation_id] = conversation.summary
        old: RollingSummary | None = kept.get(conversation_id)
        if conversation.summary is None and old is not None:
            covers = min(old.covers, len(conversation.turns))
            return replace(conversation, summary=replace(old, covers=covers))
        return conversation

    return load


def _deaf(sound: Function) -> Function:
    """The engine is given a stop flag that nobody sets."""
    import threading

    def generate(self: Any, prompt: Any, params: Any, **kwargs: Any) -> Any:
        return sound(self, prompt, params, **{**kwargs, "stop": threading.Event()})

    return generate


def _no_notices(sound: Function) -> Function:
    def result(self: Any, *args: Any, **kwargs: Any) -> Any:
        return replace(sound(self, *args, **kwargs), notices=())

    return result


def _stale_vectors(sound: Function) -> Function:
    """Old chunks stay when a document is replaced: the old rows are given another name."""

    def put(self: Any, info: Any, document: Any, entries: Any, **kwargs: Any) -> Any:
        with self._database.write() as connection:
            connection.execute(
                "UPDATE documents SET name = name || ' (old)' WHERE name = ?", (info.name,)
            )
            row = connection.execute(
                "SELECT id FROM documents WHERE name = ?", (f"{info.name} (old)",)
            ).fetchone()
        made = sound(self, info, document, entries, **kwargs)
        if row:
            with self._database.write() as connection:
                connection.execute(
                    "UPDATE chunks SET document_id = ? WHERE document_id = ?", (made.id, row[0])
                )
        return made

    return put


MUTATIONS: tuple[Mutation, ...] = (
    Mutation("summary swallows the newest turns", fold_plan, "plan_fold", _swallow),
    Mutation("summary not counted", PieceEncoder, "summary", _uncounted_summary),
    Mutation("old summary lost at each fold", FoldRun, "_begin", _forgets_first),
    Mutation("a fact dropped at each fold", fold_run, "merge_facts", _without_previous_facts),
    Mutation("facts not kept at all", fold_run, "merge_facts", always(())),
    Mutation("gate accepts everything", fold_run, "judge", always(Verdict(accepted=True))),
    Mutation("never folds", FoldJob, "_due", always(None)),
    Mutation("recall off", RecallIndexes, "of", lambda sound: lambda self, conversation: sound(
        self, replace(conversation, turns=()))),
    Mutation("recall brings back the wrong turn", recall.RecallIndex, "search", _wrong_turn),
    Mutation("facts that fell out of the list are not found", fact_recall.FactRecall, "beside",
             lambda sound: lambda self, conversation, asked, excerpts, **kwargs: excerpts),
    Mutation("recalls everything for every message", need, "need", always("much")),
    Mutation("follow-ups searched as they stand", prompting, "search_query",
             lambda sound: lambda question, turns: question),
    Mutation("standing instructions lost", recall.RecallIndex, "instructions", always([])),
    Mutation("top passage skipped", Library, "search", changed(lambda found: found[1:])),
    Mutation("documents of other chats in scope", PromptBuilder, "_passages",
             _everything_in_scope),
    Mutation("contained texts dropped by likeness", search, "drop_contained",
             changed(lambda ranked: ranked[:1])),
    Mutation("Korean syllable pairs off", words, "lexical_runs", _whole_words),
    Mutation("citation page off by one", citing, "_on_its_page", changed(_page_off)),
    Mutation("citation offsets shifted", citing, "_on_its_page", changed(_shifted)),
    Mutation("nothing is cited", citing, "align", changed(lambda found: ((), found[1]))),
    Mutation("unsupported statements not marked", align, "align",
             changed(lambda found: (found[0], ()))),
    Mutation("stale index after a delete", Index, "delete", always(True)),
    Mutation("replaced document keeps its old chunks", index.Index, "put", _stale_vectors),
    Mutation("special tokens parsed", ScriptedTokenizer, "encode", _parsed_control_tokens),
    Mutation("cache shared between conversations", ScriptedEngine, "_kept_front",
             _other_conversation),
    Mutation("cache not cut to the common prefix", ScriptedEngine, "_kept_front", _uncut),
    Mutation("budget one token too large", PromptBuilder, "budget", changed(_one_more_token)),
    Mutation("room of the reply given to the prompt", PromptBuilder, "budget",
             changed(_no_reply_reserve)),
    Mutation("question cut", PieceEncoder, "question", _cut_question),
    Mutation("system text dropped", PromptBuilder, "system_text", always("")),
    Mutation("temperature ignored", windows, "usual_sampling",
             changed(lambda params: replace(params, temperature=0.0))),
    Mutation("seed ignored", windows, "usual_sampling",
             changed(lambda params: replace(params, seed=None))),
    Mutation("stop ignored", ScriptedEngine, "generate", _deaf),
    Mutation("retry and edit keep what they replace", Store, "begin_turn", _keeps_cut_turns),
    Mutation("summary of turns that were edited away stays", Store, "load", _summary_of_the_past),
    Mutation("replies not stored", Store, "finish_turn", _loses_last_turn),
    Mutation("notices lost", ReplyRun, "result", _no_notices),
    Mutation("forgotten turns are only hidden", Store, "forget_turn", always(None)),
)  # fmt: skip
