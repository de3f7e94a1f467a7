"""Invariants: properties of the program, which must hold in every sample after every turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chatbot.regression.observation import Observation
from chatbot.regression.rules import Bounds, Rule, Verdict, a_text, bounds, true_only
from chatbot.regression.texts import holds, plain

REFUSED = "refused"
"""Code of the notice on a question that was refused before anything was stored."""


def _measured(
    measure: Callable[[Observation], float | None], unit: str
) -> Callable[[Observation, Bounds], Verdict]:
    def check(seen: Observation, value: Bounds) -> Verdict:
        number = measure(seen)
        if number is None:
            return Verdict(True, f"there are no {unit} to look at")
        return Verdict(value.hold(number), f"it is {number:.6g} {unit}")

    return check


def _memory_tokens(seen: Observation) -> int:
    return sum(s.tokens for s in seen.trace.segments if s.kind == "summary")


def _recent_turns(seen: Observation) -> int:
    return sum(s.kind == "turn" for s in seen.trace.segments)


def _reused_share(seen: Observation) -> float | None:
    usage = seen.turn.usage
    return usage.cached_tokens / usage.prompt_tokens if usage and usage.prompt_tokens else None


def _citations_valid(seen: Observation, value: bool) -> Verdict:
    """A citation must be of a passage of this turn's prompt, and word for word in its document."""
    texts = seen.documents() if seen.turn.citations else {}
    for citation in seen.turn.citations:
        name = f"{citation.document!r} {citation.quote[:60]!r}"
        if not any(
            s.kind == "passage"
            and s.document_id == citation.document_id
            and s.label == citation.label
            and s.start is not None
            and s.end is not None
            and s.start <= citation.start <= citation.end <= s.end
            for s in seen.trace.segments
        ):
            return Verdict(not value, f"{name} is of no passage of this prompt")
        text = texts.get(citation.document, "")
        if text[citation.start : citation.end] != citation.quote:
            return Verdict(not value, f"{name} does not stand in the document at that place")
    return Verdict(value, f"{len(seen.turn.citations)} citations are valid")


def _no_control_ids(seen: Observation, value: bool) -> Verdict:
    """The prompt has the template's own control ids and no others, the reply none."""
    if seen.call is not None and seen.call.control_ids != seen.expected_control_ids:
        have, want = len(seen.call.control_ids), len(seen.expected_control_ids)
        return Verdict(not value, f"the prompt has {have} control ids, the template gives {want}")
    stray = seen.forbidden_ids.intersection(seen.turn.reply_token_ids)
    if stray:
        return Verdict(not value, f"the stored reply has the control ids {sorted(stray)}")
    return Verdict(value, "no text became a control id")


def _counted(seen: Observation, value: bool) -> Verdict:
    """The trace's tokens, the engine's ids and the window agree."""
    trace = seen.trace
    total = sum(segment.tokens for segment in trace.segments)
    given = seen.call.prompt_tokens if seen.call else trace.prompt_tokens
    if not total == trace.prompt_tokens == given:
        text = f"segments of {total}, a trace of {trace.prompt_tokens} and a prompt of {given} ids"
        return Verdict(not value, text)
    if trace.prompt_tokens > trace.limit_tokens:
        text = f"{trace.prompt_tokens} tokens exceed the limit of {trace.limit_tokens}"
        return Verdict(not value, text)
    reply = seen.call.max_tokens if seen.call else trace.reply_tokens
    if seen.window_tokens and trace.limit_tokens + reply > seen.window_tokens:
        text = f"{trace.limit_tokens} and {reply} tokens exceed the window of {seen.window_tokens}"
        return Verdict(not value, text)
    return Verdict(value, f"{total} tokens everywhere")


def _question_whole(seen: Observation, value: bool) -> Verdict:
    shortened = any(notice.code == "question_shortened" for notice in seen.turn.notices)
    whole = holds(seen.prompt_texts("question")[-1], seen.turn.question)
    return Verdict((whole or shortened) == value, "the question is not in the prompt as asked")


def _notice(seen: Observation, value: str) -> Verdict:
    codes = sorted({notice.code for notice in seen.turn.notices})
    return Verdict(value in codes, f"the notices are {', '.join(codes) or 'none'}")


def _refused(seen: Observation, value: str) -> Verdict:
    sentence = " ".join(n.text for n in seen.turn.notices if n.code == REFUSED)
    return Verdict(bool(sentence) and holds(sentence, value), sentence or "it was not refused")


def _system_says(seen: Observation, value: str) -> Verdict:
    text = seen.prompt_texts("system")
    return Verdict(plain(value) in plain("\n".join(text)), "the system text is another")


LIMIT_RULES: dict[str, Rule] = {
    "prompt-tokens": Rule(
        "invariant", bounds("max"), _measured(lambda seen: seen.trace.prompt_tokens, "tokens")
    ),
    "memory-tokens": Rule("invariant", bounds("max"), _measured(_memory_tokens, "tokens")),
    "recent-turns": Rule("invariant", bounds("max"), _measured(_recent_turns, "turns")),
    "kv-bytes": Rule(
        "invariant", bounds("max"), _measured(lambda seen: seen.kv_bytes, "bytes of cache")
    ),
    "reused-share": Rule(
        "invariant", bounds("min", share=True), _measured(_reused_share, "of the prompt")
    ),
    "latency-s": Rule("invariant", bounds("max"), _measured(lambda seen: seen.latency_s, "s")),
    "first-token-s": Rule(
        "invariant", bounds("max"), _measured(lambda seen: seen.first_token_s, "s")
    ),
    "folds": Rule("invariant", bounds("min"), _measured(lambda seen: seen.folds, "folds")),
    "stored-turns": Rule(
        "invariant", bounds("max"), _measured(lambda seen: len(seen.after.turns), "turns")
    ),
    "library-documents": Rule(
        "invariant", bounds("max"), _measured(lambda seen: seen.library_documents, "documents")
    ),
    "citations-valid": Rule("invariant", true_only, _citations_valid),
    "no-control-ids": Rule("invariant", true_only, _no_control_ids),
    "counted": Rule("invariant", true_only, _counted),
    "question-whole": Rule("invariant", true_only, _question_whole),
    "notice": Rule("invariant", a_text, _notice),
    "refused": Rule("invariant", a_text, _refused),
    "system-says": Rule("invariant", a_text, _system_says),
}

BUILT_IN: tuple[tuple[str, Any], ...] = (
    ("citations-valid", True),
    ("no-control-ids", True),
    ("counted", True),
    ("question-whole", True),
)
"""Checked after every turn of every case, without being written."""
