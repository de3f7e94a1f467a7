"""Assertions about memory and documents: what was kept, found, shown to the model and cited."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from chatbot.regression.checks_text import fact
from chatbot.regression.observation import Observation
from chatbot.regression.rules import Bounds, Rule, Verdict, a_text, bounds
from chatbot.regression.texts import excerpt, holds
from retrieval.types import Citation

_PAGE = re.compile(r"[1-9][0-9]{0,8}")


class Source(NamedTuple):
    """A document, and perhaps a page and words of it."""

    document: str
    page: int | None
    quote: str | None

    def matches(self, citation: Citation) -> bool:
        if citation.document != self.document:
            return False
        last = citation.page_end or citation.page
        first = citation.page
        on_page = self.page is None or (
            first is not None and last is not None and first <= self.page <= last
        )
        return on_page and (self.quote is None or holds(citation.quote, self.quote))


def memory_texts(seen: Observation) -> dict[str, str]:
    """What a conversation holds in mind when a question comes, by where it is held."""
    summary = seen.before.summary
    held: dict[str, str] = {}
    if summary is not None:
        held["summary"] = summary.text
        held["facts"] = "\n".join(fact.text for fact in summary.facts)
    recent = seen.before.turns[summary.covers if summary else 0 :]
    held["recent turns"] = "\n".join(f"{turn.question}\n{turn.reply}" for turn in recent)
    return held


def _remembers(seen: Observation, value: str) -> Verdict:
    held = memory_texts(seen)
    places = [place for place, text in held.items() if holds(text, value)]
    if places:
        return Verdict(True, f"it is held in {', '.join(places)}")
    shown = held.get("summary", "")
    return Verdict(False, f"neither {', '.join(held)} hold it; the summary is {excerpt(shown)!r}")


def _recalls(seen: Observation, value: str) -> Verdict:
    recalled = seen.prompt_texts("recalled")
    found = any(holds(text, value) for text in recalled)
    return Verdict(found, f"{len(recalled)} old messages were recalled")


def _retrieves(seen: Observation, value: str) -> Verdict:
    passages = seen.prompt_texts("passage")
    found = any(holds(text, value) for text in passages)
    return Verdict(found, f"{len(passages)} passages reached the prompt")


def _cites(seen: Observation, value: Source) -> Verdict:
    citations = seen.turn.citations
    listed = ", ".join(_written(citation) for citation in citations) or "nothing"
    return Verdict(any(map(value.matches, citations)), f"the reply cites {listed}")


def _written(citation: Citation) -> str:
    page = f"#{citation.page}" if citation.page is not None else ""
    return f"{citation.document}{page} {excerpt(citation.quote, 60)!r}"


def _unsupported(seen: Observation, value: Bounds) -> Verdict:
    sentences = seen.turn.unsupported
    listed = f": {excerpt(' / '.join(sentences))!r}" if sentences else ""
    return Verdict(
        value.hold(len(sentences)), f"{len(sentences)} sentences have no support{listed}"
    )


def _in_prompt(seen: Observation, value: str) -> Verdict:
    kinds = sorted({s.kind for s in seen.trace.segments if holds(s.text, value)})
    return Verdict(bool(kinds), f"it stands in {', '.join(kinds)}" if kinds else "it is not there")


def _read_source(value: Any) -> Source:
    if isinstance(value, str):
        document, mark, number = a_text(value).rpartition("#")
        if not mark:
            return Source(value, None, None)
        if not _PAGE.fullmatch(number) or not document:
            raise ValueError("the name of a document, or NAME#PAGE with a page from 1")
        return Source(document, int(number), None)
    if not isinstance(value, dict) or set(value) - {"document", "page", "quote"}:
        raise ValueError("NAME, NAME#PAGE, or a mapping of document, page and quote")
    page = value.get("page")
    if page is not None and (isinstance(page, bool) or not isinstance(page, int) or page < 1):
        raise ValueError("a mapping whose page is a whole number from 1")
    quote = a_text(value["quote"]) if "quote" in value else None
    return Source(a_text(value.get("document")), page, quote)


MEMORY_RULES: dict[str, Rule] = {
    "remembers": Rule("said", a_text, _remembers, lambda value: [fact(value)]),
    "recalls": Rule("said", a_text, _recalls, lambda value: [fact(value)]),
    "retrieves": Rule("said", a_text, _retrieves, lambda value: [fact(value)]),
    "cites": Rule("said", _read_source, _cites),
    "unsupported": Rule("said", bounds("max"), _unsupported),
    "in-prompt": Rule("invariant", a_text, _in_prompt, lambda value: [fact(value)]),
}
