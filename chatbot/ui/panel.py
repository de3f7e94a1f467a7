"""HTML around the chat: the line over it, the status, the meter and the panel. Pure."""

from __future__ import annotations

from chatbot.messages import PromptTrace
from chatbot.ui.actions_html import bar_button
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import LANGUAGES, Language, table, tr
from chatbot.ui.icons import icon
from chatbot.ui.machine_html import Machine
from chatbot.ui.prompt_html import bar_html
from chatbot.ui.sentences import in_language

TABS = ("prompt", "memory", "machine", "settings")
# Sentences that the scripts of the page need.
_WORDS = (
    "dialog.cancel", "dialog.rename", "dialog.rename_title", "dialog.delete", "dialog.delete_text",
    "dialog.remove", "dialog.remove_text",
    "upload.sending", "chat.copied", "chat.label", "chat.down", "chat.question", "chat.reply",
    "chat.about", "trace.loading", "box.label", "box.send", "box.stop",
    "dialog.save", "dialog.close", "edit.title", "edit.text", "edit.text_none", "edit.text_one",
    "edit.send",
    "forget.title", "forget.text", "forget.button", "memory.edit_summary", "memory.edit_fact",
    "memory.add", "memory.delete_text", "side.delete", "source.title",
    "keys.title", "keys.list", "warn.title", "login.again_title", "login.again_text", "login.go",
    "ended.title", "ended.text",
)  # fmt: skip


def top_html(language: Language, title: str, machine: Machine, *, has_chat: bool = True) -> str:
    """The line over the chat: menu, title, model, and what can be done with the chat."""
    shown = esc(title or tr(language, "chat.untitled"))
    return (
        f"{bar_button(language, 'menu', 'menu', 'top.menu')}"
        f'<h1 title="{shown}">{shown}</h1>{_chip(language, machine)}'
        f"{_save_button(language, 'md', 'export', has_chat)}"
        f"{_save_button(language, 'json', 'export-json', has_chat)}"
        f"{bar_button(language, 'panel', 'panel', 'top.panel')}"
    )


def _save_button(language: Language, form: str, elem_id: str, is_possible: bool) -> str:
    label = esc(tr(language, f"top.export_{form}"))
    return (
        f'<button type="button" class="act save" data-act="export" data-format="{form}" '
        f'id="{elem_id}" title="{label}" aria-label="{label}"{"" if is_possible else " disabled"}>'
        f"{icon('export')}"
        f"<span>{form}</span></button>"
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


def meter_html(language: Language, trace: PromptTrace | None) -> str:
    """The thin bar under the box: how much of the prompt the last reply took."""
    if trace is None:
        return f'<span class="hint">{esc(tr(language, "meter.none"))}</span>'
    share = 100 * trace.prompt_tokens / max(1, trace.limit_tokens)
    text = tr(language, "meter.last", tokens=trace.prompt_tokens, limit=trace.limit_tokens)
    if trace.estimated:
        text = f"{text} ({tr(language, 'trace.estimated')})"
    return (
        f'<span class="track"><i style="width:{min(100.0, share):.1f}%"></i></span>'
        f'<button type="button" class="link" data-act="panel">{esc(text)}</button>'
    )


def context_html(language: Language, trace: PromptTrace | None) -> str:
    """In the panel: the parts of the last prompt."""
    title = f"<h3>{esc(tr(language, 'panel.context'))}</h3>"
    if trace is None:
        return f'{title}<p class="none">{esc(tr(language, "panel.no_context"))}</p>'
    case = esc(tr(language, "case.button"))
    return (
        f"{title}{bar_html(language, trace)}"
        f'<button type="button" class="small" data-act="case" id="make-case">{icon("test")}'
        f"<span>{case}</span></button>"
    )


def draft_meter_html(
    language: Language,
    trace: PromptTrace | None,
    tokens: int,
    limit_tokens: int,
    problem: str = "",
) -> str:
    """The meter while something is typed: what sending it would take, and what it would push out.

    `trace` None: the draft alone does not fit; `problem` says why it cannot be told.
    """
    if problem:
        return f'<span class="warn" role="status">{esc(in_language(language, problem))}</span>'
    share = 100 * tokens / max(1, limit_tokens)
    key = "meter.draft" if trace else "meter.too_long"
    text = esc(tr(language, key, tokens=tokens, limit=limit_tokens))
    kind = "full" if trace is None else "high" if share > 85 else ""
    warning = _left_out_html(language, trace) if trace else ""
    return (
        f'<span class="track {kind}"><i style="width:{min(100.0, share):.1f}%"></i></span>'
        f'<span class="draft{" warn" if trace is None else ""}">{text}</span>{warning}'
    )


def _left_out_html(language: Language, trace: PromptTrace) -> str:
    """What would be left out for lack of room: passages, and turns that no summary stands for."""
    passages = sum(1 for d in trace.dropped if d.segment.kind == "passage")
    turns = 0
    for dropped in trace.dropped:
        if dropped.segment.kind == "turn" and "no room" in dropped.reason:
            count = dropped.reason.partition(" ")[0]
            turns += int(count) if count.isdigit() else 1
    parts = [
        tr(language, f"meter.{kind}" if count > 1 else f"meter.one_{kind}", count=count)
        for kind, count in (("turns", turns), ("passages", passages))
        if count
    ]
    if not parts:
        return ""
    text = esc(tr(language, "meter.left_out", parts=", ".join(parts)))
    return f'<span class="warn" role="status">{text}</span>'


def foot_html(language: Language, user: str = "") -> str:
    """At the foot of the side: language, colours, settings, keys; for a `user` who has logged in
    also the name, and the way out."""
    options = "".join(
        f'<option value="{code}"{" selected" if code == language else ""}>'
        f"{esc(tr(code, 'language.name'))}</option>"
        for code in LANGUAGES
    )
    label = esc(tr(language, "settings.language"))
    return (
        f"{_user_html(language, user) if user else ''}"
        f'<select id="language" data-act="language" aria-label="{label}" title="{label}">'
        f"{options}</select>"
        f"{bar_button(language, 'theme', 'theme', 'settings.theme')}"
        f"{bar_button(language, 'keys', 'help', 'keys.title')}"
        f"{bar_button(language, 'options', 'sliders', 'settings.title')}"
        f"{_logout_html(language) if user else ''}"
    )


def _user_html(language: Language, user: str) -> str:
    shown = esc(tr(language, "login.as", name=user))
    return f'<span class="user" data-user="{esc(user)}">{shown}</span>'


def _logout_html(language: Language) -> str:
    label = esc(tr(language, "login.out"))
    return (
        f'<form method="post" action="/local/logout"><button class="act" title="{label}" '
        f'aria-label="{label}">{icon("out")}</button></form>'
    )


def tabs_html(language: Language) -> str:
    """What the panel can show; the page's script switches between them."""
    buttons = "".join(
        f'<button type="button" role="tab" data-act="tab" data-tab="{name}" '
        f'aria-selected="{"true" if name == "prompt" else "false"}">'
        f"{esc(tr(language, f'panel.tab_{name}'))}</button>"
        for name in TABS
    )
    label = esc(tr(language, "top.panel"))
    return f'<div class="tabs" role="tablist" aria-label="{label}">{buttons}</div>'


def search_html(language: Language, text: str) -> str:
    """The field that searches the chats, and the button that brings chats in from files."""
    label, load = esc(tr(language, "side.search")), esc(tr(language, "side.import"))
    return (
        f'<span class="search">{icon("search")}<input type="search" id="search" maxlength="200" '
        f'placeholder="{label}" aria-label="{label}" value="{esc(text)}" autocomplete="off"></span>'
        f'<button type="button" class="act" data-act="import" title="{load}" '
        f'aria-label="{load}">{icon("import")}</button>'
        '<input type="file" id="import-files" accept=".json,.md,.markdown,.txt" multiple hidden '
        'aria-hidden="true" tabindex="-1">'
    )


def new_chat_html(language: Language) -> str:
    """The button that starts a chat."""
    text = esc(tr(language, "side.new"))
    return f'<button type="button" data-act="new">{icon("plus")}<span>{text}</span></button>'


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
    words = "".join(f'<i data-key="{key}">{esc(table(language)[key])}</i>' for key in _WORDS)
    return f'<div id="words" lang="{language}" hidden>{words}</div>'
