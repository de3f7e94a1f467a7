"""The memory of a chat as HTML: summary, facts, and how they came to be. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chatbot.messages import Conversation, Fact, FoldDecision, RollingSummary
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.fragments import covers_text
from chatbot.ui.i18n import Language, tr, why_text
from chatbot.ui.icons import icon

SHOWN_DECISIONS = 12


def summary_html(
    language: Language, conversation: Conversation | None, decisions: Sequence[FoldDecision]
) -> str:
    """The summary that stands for the oldest turns, with what can be done with it."""
    title = f"<h3>{esc(tr(language, 'panel.summary'))}</h3>"
    if conversation is None:
        return f'{title}<p class="none">{esc(tr(language, "panel.no_summary"))}</p>'
    summary = conversation.summary
    body = f'<p class="none">{esc(tr(language, "panel.no_summary"))}</p>'
    if summary and (summary.covers or summary.text):
        body = _summary(language, summary)
    return f"{title}{body}{_refusal(language, decisions)}{_history(language, decisions)}"


def facts_html(language: Language, conversation: Conversation | None) -> str:
    """The facts with the turns that they come from; empty for a chat that has not begun."""
    if conversation is None:
        return ""
    facts = conversation.summary.facts if conversation.summary else ()
    numbers = {turn.id: number for number, turn in enumerate(conversation.turns, start=1)}
    rows = "".join(_fact(language, fact, numbers) for fact in facts)
    body = f'<ul class="facts-list">{rows}</ul>' if rows else _no_facts(language, conversation)
    add = (
        f'<button type="button" class="small" data-act="fact-add">{icon("plus")}'
        f"<span>{esc(tr(language, 'memory.add'))}</span></button>"
    )
    return f"<h3>{esc(tr(language, 'panel.facts'))}</h3>{body}{add}"


def _no_facts(language: Language, conversation: Conversation) -> str:
    # Facts are taken from turns as they are folded; an empty list before is no fault.
    key = "memory.no_facts" if conversation.summary else "memory.no_facts_yet"
    return f'<p class="none">{esc(tr(language, key))}</p>'


def _summary(language: Language, summary: RollingSummary) -> str:
    origin = esc(tr(language, f"memory.origin_{summary.origin}"))
    tokens = esc(tr(language, "trace.tokens", count=summary.tokens))
    covers = f"<span>{esc(covers_text(language, summary))}</span>" if summary.covers else ""
    edit = (
        f'<button type="button" class="small" data-act="summary-edit">{icon("edit")}'
        f"<span>{esc(tr(language, 'memory.edit'))}</span></button>"
    )
    return (
        f'<p class="origin"><b class="tag {summary.origin}">{origin}</b>{covers}'
        f'<span class="n">{tokens}</span></p>'
        f'<div class="verbatim" id="summary-text">{esc(summary.text)}</div>{edit}'
    )


def _fact(language: Language, fact: Fact, numbers: Mapping[str, int]) -> str:
    fid, text = esc(fact.id), esc(fact.text)
    notes = []
    if fact.earlier:
        before = esc(tr(language, "memory.earlier"))
        notes.append(f"<span>{before} <s>{esc(fact.earlier)}</s></span>")
    if fact.turn_id in numbers:
        source = esc(tr(language, "memory.turn", number=numbers[fact.turn_id]))
        notes.append(
            f'<button type="button" class="link" data-act="goto" data-id="{esc(fact.turn_id)}">'
            f"{source}</button>"
        )
    if fact.edited:
        key = "memory.edited" if fact.turn_id else "memory.own"
        notes.append(f'<b class="tag edited">{esc(tr(language, key))}</b>')
    pin = "memory.unpin" if fact.pinned else "memory.pin"
    tools = (
        _tool(language, "fact-pin", "pin", pin, fid, text, pressed=fact.pinned)
        + _tool(language, "fact-edit", "edit", "memory.edit", fid, text)
        + _tool(language, "fact-delete", "bin", "side.delete", fid, text)
    )
    return (
        f'<li class="fact{" pinned" if fact.pinned else ""}" data-id="{fid}">'
        f'<span class="fact-text">{text}</span><span class="tools">{tools}</span>'
        f'<span class="notes">{"".join(notes)}</span></li>'
    )


def _refusal(language: Language, decisions: Sequence[FoldDecision]) -> str:
    """Why the newest attempt came to nothing; empty when it did not."""
    if not decisions or decisions[-1].accepted:
        return ""
    reasons = "; ".join(why_text(language, reason) for reason in decisions[-1].reasons)
    text = esc(tr(language, "memory.refused", reasons=reasons))
    return f'<p class="warn" data-code="summary_refused">{text}</p>'


def _history(language: Language, decisions: Sequence[FoldDecision]) -> str:
    if not decisions:
        return ""
    newest = list(reversed(decisions))[:SHOWN_DECISIONS]
    rows = "".join(_decision(language, decision) for decision in newest)
    title = esc(tr(language, "memory.history", count=len(decisions)))
    return f'<details class="decisions"><summary>{title}</summary><ol>{rows}</ol></details>'


def _decision(language: Language, decision: FoldDecision) -> str:
    kind = "accepted" if decision.accepted else "refused"
    verdict = esc(tr(language, f"memory.{kind}_short"))
    key = "memory.oldest" if decision.covers != 1 else "memory.one_oldest"
    turns = esc(tr(language, key, count=decision.covers))
    reasons = "".join(f"<li>{esc(why_text(language, reason))}</li>" for reason in decision.reasons)
    candidate = ""
    if decision.candidate:
        label = esc(tr(language, "memory.candidate"))
        candidate = (
            f"<details><summary>{label}</summary>"
            f'<div class="verbatim">{esc(decision.candidate)}</div></details>'
        )
    when = esc(decision.created[:16].replace("T", " "))
    return (
        f'<li class="decision"><p><b class="tag {kind}">{verdict}</b><span>{turns}</span>'
        f'<time class="n">{when}</time></p><ul>{reasons}</ul>{candidate}</li>'
    )


def _tool(
    language: Language, act: str, picture: str, key: str, target: str, name: str,
    *, pressed: bool | None = None,
) -> str:  # fmt: skip
    label = esc(tr(language, key))
    state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
    return (
        f'<button type="button" class="tool" data-act="{act}" data-id="{target}" '
        f'data-text="{name}" title="{label}" aria-label="{label}: {name}"{state}>'
        f"{icon(picture)}</button>"
    )
