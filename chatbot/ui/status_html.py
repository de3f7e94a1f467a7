"""The strip over the box: how far the model is, or why there is none. Pure."""

from __future__ import annotations

from chatbot.engine.base import EngineStatus
from chatbot.engine.exchange import Switch
from chatbot.ui.actions_html import bar_button
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import Language, tr
from chatbot.ui.options_html import switch_text
from chatbot.ui.sentences import in_language


def status_html(
    language: Language,
    status: EngineStatus,
    switch: Switch | None = None,
    *,
    to_demo: bool = False,
    is_saved: bool = False,
) -> str:
    """The strip over the box while the model is not there or another one is being got, and when
    that has failed; else empty.

    `to_demo`: the demo model can be taken instead. `is_saved`: the model was chosen on the page.
    """
    if switch and (switch.is_running or switch.phase == "failed"):
        return _switch_html(language, switch)
    if status.state == "ready":
        return ""
    share = status.progress
    percent = f" {100 * share:.0f} %" if share is not None else ""
    progress = _progress_html(share)
    hint = esc(tr(language, "status.again_hint" if status.again else f"status.{status.state}_hint"))
    ways = _ways_html(language, to_demo, is_saved) if status.state == "failed" else ""
    return (
        f'<div class="status {status.state}" role="status"><strong>'
        f"{esc(tr(language, f'status.{status.state}'))}{percent}</strong>"
        f"<span>{esc(in_language(language, status.message))}</span><span>{hint}</span>{ways}"
        f"{progress if status.state == 'loading' else ''}</div>"
    )


def _switch_html(language: Language, switch: Switch) -> str:
    text = esc(switch_text(language, switch))
    if switch.is_running:
        hint = esc(tr(language, "switch.hint" if switch.phase != "preparing" else "switch.still"))
        return (
            f'<div class="status loading" role="status"><strong>{text}</strong><span>{hint}</span>'
            f"{_progress_html(switch.progress)}</div>"
        )
    close = bar_button(language, "switch-dismiss", "close", "document.dismiss")
    return f'<div class="status failed" role="alert"><strong>{text}</strong>{close}</div>'


def _ways_html(language: Language, to_demo: bool, is_saved: bool) -> str:
    """Where a model that failed comes from, and the way past it."""
    origin = f"<span>{esc(tr(language, 'status.saved_model'))}</span>" if is_saved else ""
    if not to_demo:
        return origin
    button = esc(tr(language, "status.to_demo"))
    return f'{origin}<button type="button" class="small" data-act="use-demo">{button}</button>'


def _progress_html(share: float | None) -> str:
    width = f' style="width:{100 * share:.0f}%"' if share is not None else ""
    kind = "" if share is not None else " endless"
    return f'<span class="progress{kind}"><i{width}></i></span>'
