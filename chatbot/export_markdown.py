"""A chat as a text that people read: turns with ids and times, and what is remembered of them.

Knows no file. `markdown_form` says how its frame is told from what people wrote. What a model reads
back is the JSON of `export_messages`.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatbot.markdown_form import FORM, coded, marked
from chatbot.messages import Conversation, Fact, Message, RollingSummary, Turn
from chatbot.records import storable

_LABELS = {
    "en": {
        "untitled": "Chat",
        "created": "Begun",
        "updated": "Changed",
        "system": "Instructions",
        "summary": "Summary of turns 1 to {covers}",
        "own": "Notes",
        "facts": "Facts",
        "user": "You",
        "assistant": "Assistant",
        "sources": "Sources",
        "no_reply": "No reply ({finish}).",
        "cut": "*The reply ends here ({finish}).*",
        "pinned": "pinned",
        "edited": "edited",
        "earlier": "before: {earlier}",
        "model": "by the model",
        "extractive": "sentences of the turns",
        "decisions": "How the summary came to be",
        "accepted": "kept",
        "refused": "refused",
    },
    "ko": {
        "untitled": "대화",
        "created": "시작",
        "updated": "변경",
        "system": "지시",
        "summary": "1~{covers}번째 차례의 요약",
        "own": "메모",
        "facts": "사실",
        "user": "나",
        "assistant": "도우미",
        "sources": "출처",
        "no_reply": "답변 없음 ({finish}).",
        "cut": "*답변이 여기서 끊겼습니다 ({finish}).*",
        "pinned": "고정",
        "edited": "수정",
        "earlier": "이전: {earlier}",
        "model": "모델 작성",
        "extractive": "대화의 문장",
        "decisions": "요약이 만들어진 과정",
        "accepted": "채택",
        "refused": "거절",
    },
}


def as_markdown(conversation: Conversation, language: str = "en") -> str:
    """The chat, what is remembered of it, and how the summary came to be."""
    labels = _LABELS["ko" if language == "ko" else "en"]
    lines = [f"# {one_line(conversation.title) or labels['untitled']}", ""]
    lines += [f"- id: `{conversation.id}`", FORM]
    for name, moment in (("created", conversation.created), ("updated", conversation.updated)):
        if moment:
            lines.append(f"- {labels[name]}: {moment}")
    if conversation.system_text:
        lines += ["", f"## {labels['system']}", "", marked(conversation.system_text, is_head=True)]
    if conversation.summary:
        lines += _summary(conversation.summary, labels)
    for number, turn in enumerate(conversation.turns, start=1):
        lines += _turn(number, turn, labels)
    if conversation.decisions:
        lines += ["", f"## {labels['decisions']}", ""]
        for d in conversation.decisions:
            verdict = labels["accepted" if d.accepted else "refused"]
            why = one_line("; ".join(d.reasons))
            lines.append(f"- {d.created}, 1-{d.covers}: {verdict}: {why}")
    return storable("\n".join(lines)) + "\n"


def one_line(text: str) -> str:
    """A text on one line, so that it stays within a heading or an item."""
    return " ".join(text.split())


def _summary(summary: RollingSummary, labels: dict[str, str]) -> Iterator[str]:
    if summary.text:
        heading = labels["summary"] if summary.covers else labels["own"]
        yield from ("", f"## {heading.format(covers=summary.covers)}", "")
        yield f"*{labels[summary.origin]}, {summary.created}*"
        yield from ("", marked(summary.text, is_head=True))
    if summary.facts:
        yield from ("", f"## {labels['facts']}", "")
        yield from (_fact(fact, labels) for fact in summary.facts)


def _fact(fact: Fact, labels: dict[str, str]) -> str:
    notes = [labels[n] for n in ("pinned", "edited") if getattr(fact, n)]
    if fact.earlier:
        notes.append(labels["earlier"].format(earlier=one_line(fact.earlier)))
    if fact.turn_id:
        notes.append(f"`{fact.turn_id}`")
    return f"- {one_line(fact.text)}" + (f" ({', '.join(notes)})" if notes else "")


def _turn(number: int, turn: Turn, labels: dict[str, str]) -> Iterator[str]:
    for message in (*turn.user, *turn.assistant):
        yield from ("", f"## {number}. {_speaker(message, labels)}", "", marked(message.content))
    if not turn.assistant or turn.finish != "stop":
        label = labels["cut" if turn.assistant else "no_reply"]
        yield from ("", label.format(finish=turn.finish))
    if turn.citations:
        yield from ("", f"**{labels['sources']}**", "")
        for c in turn.citations:
            page = f", {c.page}" if c.page is not None else ""
            yield f"- [{c.label}] {one_line(c.document)}{page}: {one_line(c.quote)}"


def _speaker(message: Message, labels: dict[str, str]) -> str:
    who = labels["assistant" if message.role == "assistant" else "user"]
    if name := one_line(message.name or ""):
        who = f"{who} ({name})"
    when = f", {coded(one_line(message.created))}" if message.created else ""
    return f"{who}{when} `{coded(message.id)}`"
