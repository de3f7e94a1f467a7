"""HTML that stands in the chat around the texts. Pure; everything from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from chatbot.messages import Finish, Notice, PromptTrace, RollingSummary, Turn, Version
from chatbot.ui.actions_html import actions_html
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import Language, notice_text, tr
from chatbot.ui.icons import icon
from chatbot.ui.place_words import pages_text
from retrieval.types import Citation

_ODD_FINISH: frozenset[Finish] = frozenset(
    {"running", "length", "cancelled", "error", "interrupted", "memory"}
)
# Notices that say why a reply failed; they stand with its end.
_FAILURES = frozenset({"reply_failed", "out_of_memory"})
_OPEN_SOURCES = 3


def unused_html(language: Language, count: int) -> str:
    """Says that none of the `count` documents is used in the chat, with the way to use them all."""
    text = esc(
        tr(language, "document.none_used_one" if count == 1 else "document.none_used", count=count)
    )
    return (
        f'<p class="unused hint">{text} <button type="button" class="small" data-act="use-all">'
        f"{esc(tr(language, 'document.use_all'))}</button></p>"
    )


def welcome_html(
    language: Language, is_demo: bool, has_documents: bool, unused_documents: int = 0
) -> str:
    """What an empty chat shows: a greeting, suggestions, and what is easily overlooked: that the
    model is the demo model, that there are documents which this chat does not use."""
    keys = ("document_1", "document_2") if has_documents else ("1", "2", "3")
    ideas = "".join(
        f'<button type="button" class="idea" data-act="suggest">'
        f"{esc(tr(language, f'welcome.idea_{key}'))}</button>"
        for key in keys
    )
    note = unused_html(language, unused_documents) if unused_documents else ""
    note += demo_note_html(language) if is_demo else ""
    return (
        f'<div class="welcome"><h2>{esc(tr(language, "welcome.title"))}</h2>'
        f'<p class="lead">{esc(tr(language, "welcome.lead"))}</p>'
        f'<div class="ideas">{ideas}</div>{note}</div>'
    )


def demo_note_html(language: Language) -> str:
    """Says plainly that the model is a small English one, and how to start a better one."""
    return (
        f'<aside class="demo-note"><strong>{esc(tr(language, "demo.title"))}</strong>'
        f"<p>{esc(tr(language, 'demo.text'))}</p>"
        f"<p>{_unbroken(esc(tr(language, 'demo.better')), '--model')}</p>"
        f"<code>{esc(tr(language, 'demo.command'))}</code>"
        '<button type="button" class="small" data-act="options">'
        f"{esc(tr(language, 'demo.choose'))}</button></aside>"
    )


def earlier_html(language: Language, count: int) -> str:
    """The button over the oldest turn shown."""
    text = esc(tr(language, "chat.earlier", count=count))
    return f'<div class="earlier"><button type="button" data-act="earlier">{text}</button></div>'


def fold_html(language: Language, summary: RollingSummary) -> str:
    """The line under the turns that the summary stands for, with its text to read."""
    line = esc(covers_text(language, summary))
    origin = esc(tr(language, f"fold.origin_{summary.origin}", tokens=summary.tokens))
    return (
        f'<details class="foldline"><summary><span>{line}</span></summary>'
        f'<div class="fold-body"><p class="origin">{origin}</p>'
        f'<div class="verbatim">{esc(summary.text)}</div></div></details>'
    )


def covers_text(language: Language, summary: RollingSummary) -> str:
    """How many turns a summary stands for."""
    key = "fold.line" if summary.covers != 1 else "fold.one_line"
    return tr(language, key, count=summary.covers)


def pending_html(
    language: Language, phase: str, position: int, document: str, trace: PromptTrace | None
) -> str:
    """What a reply without any text yet is waiting for."""
    tokens = trace.prompt_tokens if trace else 0
    waiting = {0: "pending.start", 1: "pending.one_waiting"}
    key = waiting.get(position, "pending.waiting") if phase == "waiting" else f"pending.{phase}"
    text = tr(language, key, count=position, document=document, tokens=tokens)
    return (
        f'<div class="pending" role="status"><span class="dots"><i></i><i></i><i></i></span>'
        f"<span>{esc(text)}</span></div>"
    )


def reply_foot_html(
    turn: Turn,
    language: Language,
    trace: PromptTrace | None,
    *,
    is_last: bool,
    versions: Sequence[Version] = (),
) -> str:
    """Everything under a reply: how it ended, notices, sources, actions and its prompt."""
    pieces = [
        _finish_html(turn, language),
        _notices_html(turn, language, trace),
        _sources_html(turn, language),
        _unsupported_html(turn, language),
        actions_html(turn, language, trace, is_last=is_last, versions=versions),
    ]
    return f'<div class="foot" data-turn="{esc(turn.id)}">{"".join(pieces)}</div>'


def citation_html(citation: Citation, language: Language, number: int) -> str:
    """One source: label, document, page and the words that stand there.

    `number` is its place among all sources of the turn, by which its page is asked for.
    """
    label = f'<span class="label">{esc(citation.label)}</span>' if citation.label else ""
    return (
        f'<li class="source"><p class="where">{label}'
        f'<button type="button" class="document" data-act="source" data-number="{number}" '
        f'title="{esc(tr(language, "source.open"))}">{esc(citation.document)}</button>'
        f"{page_html(language, citation)}"
        f"</p><blockquote>{esc(citation.quote)}</blockquote></li>"
    )


def page_html(language: Language, citation: Citation) -> str:
    """The page or pages of a passage, or nothing for formats without pages."""
    if citation.page is None:
        return ""
    text = pages_text(language, citation.document, citation.page, citation.page_end)
    return f'<span class="page">{esc(text)}</span>'


def _finish_html(turn: Turn, language: Language) -> str:
    if turn.finish not in _ODD_FINISH:
        return ""
    details = [notice_text(language, n) for n in turn.notices if n.code in _FAILURES]
    text = " ".join((tr(language, f"finish.{turn.finish}"), *details))
    kind = "bad" if turn.finish in ("error", "memory") else "mild"
    return f'<p class="finish {kind}" data-finish="{turn.finish}">{esc(text)}</p>'


def _notices_html(turn: Turn, language: Language, trace: PromptTrace | None) -> str:
    shown: list[Notice] = []
    for notice in (*turn.notices, *(trace.notices if trace else ())):
        if notice.code not in _FAILURES and notice not in shown:
            shown.append(notice)
    return "".join(
        f'<p class="notice" data-code="{esc(n.code)}">{icon("info")}'
        f"<span>{esc(notice_text(language, n, without_reply=not turn.reply))}</span></p>"
        for n in shown
    )


def _sources_html(turn: Turn, language: Language) -> str:
    best = _best_html(turn.best_sentence, language)
    before = 1 if turn.best_sentence else 0
    cited = [
        (number, c)
        for number, c in enumerate(turn.citations, start=before)
        if not _same_place(c, turn.best_sentence)
    ]
    if not cited:
        return f'<section class="sources">{best}</section>' if best else ""
    first = _list_html(cited[:_OPEN_SOURCES], language)
    rest = cited[_OPEN_SOURCES:]
    more = ""
    if rest:
        text = esc(tr(language, "source.more", count=len(rest)))
        more = f"<details><summary>{text}</summary>{_list_html(rest, language)}</details>"
    title = esc(tr(language, "source.title"))
    return f'<section class="sources">{best}<h4>{title}</h4>{first}{more}</section>'


def _same_place(citation: Citation, other: Citation | None) -> bool:
    """Whether both quote the same words, which need not be shown twice."""
    return other is not None and (citation.document_id, citation.start, citation.end) == (
        other.document_id,
        other.start,
        other.end,
    )


def _list_html(citations: Sequence[tuple[int, Citation]], language: Language) -> str:
    return f"<ol>{''.join(citation_html(c, language, number) for number, c in citations)}</ol>"


def _best_html(best: Citation | None, language: Language) -> str:
    if best is None:
        return ""
    title = esc(tr(language, "source.best"))
    return f'<h4>{title}</h4><ol class="best">{citation_html(best, language, 0)}</ol>'


def _unsupported_html(turn: Turn, language: Language) -> str:
    if not turn.unsupported:
        return ""
    items = "".join(f"<li>{esc(text)}</li>" for text in turn.unsupported)
    key = "source.unsupported" if len(turn.unsupported) > 1 else "source.one_unsupported"
    text = esc(tr(language, key, count=len(turn.unsupported)))
    return f'<details class="unsupported-list"><summary>{text}</summary><ul>{items}</ul></details>'


def _unbroken(markup: str, word: str) -> str:
    """Keep a word on one line that a browser would break behind its hyphens."""
    return markup.replace(word, f'<span class="unbroken">{word}</span>')
