"""HTML around the chat: the line over it, the status, the meter and the panel. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from chatbot.engine.base import EngineInfo, EngineStatus
from chatbot.messages import Conversation, PromptTrace, RollingSummary, Usage
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.fragments import covers_text
from chatbot.ui.i18n import LANGUAGES, Language, tr
from chatbot.ui.icons import icon
from chatbot.ui.prompt_html import bar_html

# Sentences that the scripts of the page need.
_WORDS = (
    "dialog.cancel", "dialog.rename", "dialog.rename_title", "dialog.delete", "dialog.delete_text",
    "dialog.remove", "dialog.remove_text",
    "upload.sending", "chat.copied", "trace.loading", "box.label", "box.send", "box.stop",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """What the panel says about the model."""

    status: EngineStatus
    info: EngineInfo | None = None
    window_tokens: int = 0
    """The window in use, which may be smaller than what the model could take."""


def top_html(language: Language, title: str, machine: Machine) -> str:
    """The line over the chat: menu, title, model, and what can be done with the chat."""
    shown = esc(title or tr(language, "chat.untitled"))
    return (
        f"{_bar_button(language, 'menu', 'menu', 'top.menu')}"
        f'<h1 title="{shown}">{shown}</h1>{_chip(language, machine)}'
        f"{_bar_button(language, 'export', 'export', 'top.export', 'export')}"
        f"{_bar_button(language, 'panel', 'panel', 'top.panel')}"
    )


def _chip(language: Language, machine: Machine) -> str:
    state = machine.status.state
    if state == "ready" and machine.info:
        name = esc(machine.info.model.rstrip("/").rsplit("/", 1)[-1])
        model = f'<span class="model">{name}</span>'
        if machine.info.is_demo:
            badge = f'<span class="badge">{esc(tr(language, "top.demo"))}</span>'
            # The embedded model is named so, which need not be said twice.
            model = badge if machine.info.model == "demo" else model + badge
        return f'<span class="chip ready" title="{esc(machine.info.model)}">{model}</span>'
    return f'<span class="chip {state}">{esc(tr(language, f"status.{state}"))}</span>'


def status_html(language: Language, status: EngineStatus) -> str:
    """The strip over the box while the model is not there; empty once it is."""
    if status.state == "ready":
        return ""
    share = status.progress
    percent = f" {100 * share:.0f} %" if share is not None else ""
    width = f' style="width:{100 * share:.0f}%"' if share is not None else ""
    kind = "" if share is not None else " endless"
    progress = f'<span class="progress{kind}"><i{width}></i></span>'
    hint = esc(tr(language, f"status.{status.state}_hint"))
    return (
        f'<div class="status {status.state}" role="status"><strong>'
        f"{esc(tr(language, f'status.{status.state}'))}{percent}</strong>"
        f"<span>{esc(status.message)}</span><span>{hint}</span>"
        f"{progress if status.state == 'loading' else ''}</div>"
    )


def meter_html(language: Language, trace: PromptTrace | None) -> str:
    """The thin bar under the box: how much of the prompt the last reply took."""
    if trace is None:
        return f'<span class="hint">{esc(tr(language, "meter.none"))}</span>'
    share = 100 * trace.prompt_tokens / max(1, trace.limit_tokens)
    text = tr(language, "meter.last", tokens=trace.prompt_tokens, limit=trace.limit_tokens)
    return (
        f'<span class="track"><i style="width:{min(100.0, share):.1f}%"></i></span>'
        f'<button type="button" class="link" data-act="panel">{esc(text)}</button>'
    )


def context_html(language: Language, trace: PromptTrace | None) -> str:
    """In the panel: the parts of the last prompt."""
    title = f"<h3>{esc(tr(language, 'panel.context'))}</h3>"
    if trace is None:
        return f'{title}<p class="none">{esc(tr(language, "panel.no_context"))}</p>'
    return f"{title}{bar_html(language, trace)}"


def summary_html(language: Language, summary: RollingSummary | None) -> str:
    """In the panel: the summary that stands for the oldest turns."""
    title = f"<h3>{esc(tr(language, 'panel.summary'))}</h3>"
    if summary is None:
        return f'{title}<p class="none">{esc(tr(language, "panel.no_summary"))}</p>'
    covers = esc(covers_text(language, summary))
    origin = esc(tr(language, f"fold.origin_{summary.origin}", tokens=summary.tokens))
    return (
        f'{title}<p class="origin">{covers}. {origin}</p>'
        f'<div class="verbatim">{esc(summary.text)}</div>'
    )


def facts_html(language: Language, summary: RollingSummary | None) -> str:
    """In the panel: the short verbatim lines that the summary carries; empty without any."""
    if summary is None or not summary.facts:
        return ""
    lines = "".join(f"<li>{esc(fact.text)}</li>" for fact in summary.facts)
    return f"<h3>{esc(tr(language, 'panel.facts'))}</h3><ul>{lines}</ul>"


def memory_html(language: Language, machine: Machine, usage: Usage | None) -> str:
    """In the panel: the model, where it runs, and how fast the last reply was."""
    rows: list[tuple[str, str]] = []
    if machine.info:
        info = machine.info
        rows.append((tr(language, "machine.model"), info.model))
        kind = " · ".join(part for part in (info.device, info.dtype) if part)
        if info.quantization != "none":
            kind = f"{kind} · {info.quantization}"
        rows.append((tr(language, "machine.device"), kind))
        window = tr(language, "trace.tokens", count=machine.window_tokens)
        rows.append((tr(language, "machine.window"), window))
    if usage and usage.decode_s > 0:
        speed = usage.completion_tokens / usage.decode_s
        rows.append(
            (tr(language, "machine.speed"), tr(language, "machine.per_s", rate=f"{speed:.1f}"))
        )
        rows.append((tr(language, "machine.first"), f"{usage.prefill_s:.1f} s"))
    cells = "".join(f"<dt>{esc(key)}</dt><dd>{esc(value)}</dd>" for key, value in rows)
    return f"<h3>{esc(tr(language, 'panel.machine'))}</h3><dl>{cells}</dl>"


def settings_html(language: Language) -> str:
    """Language and colours."""
    options = "".join(
        f'<option value="{code}"{" selected" if code == language else ""}>'
        f"{esc(tr(code, 'language.name'))}</option>"
        for code in LANGUAGES
    )
    return (
        f'<label class="setting">{esc(tr(language, "settings.language"))}'
        f'<select id="language" data-act="language">{options}</select></label>'
        f'<button type="button" class="setting" data-act="theme">{icon("theme")}'
        f"{esc(tr(language, 'settings.theme'))}</button>"
    )


def new_chat_html(language: Language) -> str:
    """The button that starts a chat."""
    text = esc(tr(language, "side.new"))
    return f'<button type="button" data-act="new">{icon("plus")}<span>{text}</span></button>'


def last_of(conversation: Conversation | None) -> Usage | None:
    """Usage of the newest reply that has one."""
    turns = conversation.turns if conversation else ()
    return next((turn.usage for turn in reversed(turns) if turn.usage), None)


def titles_html(language: Language) -> str:
    """The headline of the documents, with how they are used."""
    title, hint = tr(language, "side.documents"), tr(language, "side.documents_hint")
    return f'<h2>{esc(title)}</h2><p class="hint">{esc(hint)}</p>'


def upload_html(language: Language, limit_mb: int) -> str:
    """The place to click or to drop files on; the script of the page sends them."""
    return (
        f'<button type="button" class="drop" data-act="pick" data-limit="{limit_mb}">'
        f"{icon('upload')}<span>{esc(tr(language, 'upload.button'))}</span></button>"
        '<input type="file" id="upload-files" multiple hidden aria-hidden="true" tabindex="-1">'
        '<ul class="items" id="sending" aria-live="polite"></ul>'
    )


def words_html(language: Language) -> str:
    """The sentences that the script of the page shows, as data on one hidden element."""
    words = "".join(f'<i data-key="{key}">{esc(tr(language, key))}</i>' for key in _WORDS)
    return f'<div id="words" lang="{language}" hidden>{words}</div>'


def _bar_button(language: Language, act: str, picture: str, key: str, elem_id: str = "") -> str:
    label = esc(tr(language, key))
    named = f' id="{elem_id}"' if elem_id else ""
    return (
        f'<button type="button" class="act" data-act="{act}"{named} title="{label}" '
        f'aria-label="{label}">{icon(picture)}</button>'
    )
