"""A prompt trace and the sources of a reply for people, as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from chatbot.messages import PromptTrace, Segment, Turn
from retrieval.types import Citation

_SHOWN_CHARACTERS = 60


def trace_table(trace: PromptTrace) -> str:
    """The pieces of a prompt with their tokens, what was left out and why, and the sum."""
    about = " (estimated)" if trace.estimated else ""
    sums = f"{trace.prompt_tokens} of {trace.limit_tokens} tokens{about}"
    lines = [f"{sums} for: {_short(trace.question)}"]
    lines += [f"{s.tokens:>7}  {_name(s):<12} {_short(s.text)}" for s in trace.segments]
    for dropped in trace.dropped:
        segment = dropped.segment
        text = f" {_short(segment.text)}" if segment.text else ""
        lines.append(f"{'-':>7}  {_name(segment):<12}{text} ({dropped.reason})")
    lines += [f"{'!':>7}  {notice.text}" for notice in trace.notices]
    return "\n".join(lines)


def sources_text(turn: Turn, *, listed_by: str = "") -> Iterator[str]:
    """The sources of a reply, the best-matching sentence, and how much no source supports.

    `listed_by` ends the sentence on what is not supported with where to see it.
    """
    for citation in turn.citations:
        yield f"[{citation.label}] {where(citation)}: {_short(citation.quote, 200)}"
    if turn.best_sentence is not None:
        quote = " ".join(turn.best_sentence.quote.split())
        yield f"Best match in {where(turn.best_sentence)}: {quote}"
    if turn.unsupported:
        n = len(turn.unsupported)
        what = "1 statement is" if n == 1 else f"{n} statements are"
        yield f"{what} not found in the documents{listed_by}."


def where(citation: Citation) -> str:
    """Document and page."""
    document = " ".join(citation.document.split())
    return document if citation.page is None else f"{document}, p. {citation.page}"


def _name(segment: Segment) -> str:
    return f"{segment.kind} {segment.label}" if segment.label else segment.kind


def _short(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
