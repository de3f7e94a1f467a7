"""Where each widget of the page stands. Wires nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from chatbot.ui.panel import new_chat_html

TITLE = "Local Llama Chat"
_LATEX = [
    {"left": "$$", "right": "$$", "display": True},
    {"left": "\\[", "right": "\\]", "display": True},
    {"left": "\\(", "right": "\\)", "display": False},
]
# Tells the page's script how to reach the server; the handlers check everything again.
_BRIDGE_JS = """
localchat.connect((name, data) => trigger(name, data), server);
// The events: 'act' 'retry' 'edit' 'uploaded'
"""


def layout(server_functions: list[Callable[..., Any]]) -> dict[str, Any]:
    """All widgets by name, laid out in the Blocks that are open."""
    widgets: dict[str, Any] = {
        "cid": gr.Textbox(visible="hidden", elem_id="cid"),
        "lang": gr.Textbox(visible="hidden", elem_id="lang"),
        "words": _html("words-box"),
        "bridge": gr.HTML(
            "",
            js_on_load=_BRIDGE_JS,
            elem_id="bridge",
            server_functions=server_functions,
        ),
        "timer": gr.Timer(1.0, active=False),
    }
    with gr.Row(elem_id="shell", equal_height=False):
        with gr.Column(elem_id="side", scale=0, min_width=0):
            _side(widgets)
        with gr.Column(elem_id="main", scale=1, min_width=0):
            _main(widgets)
        with gr.Column(elem_id="panel", scale=0, min_width=0):
            widgets["tabs"] = _html("panel-tabs")
            for name in ("context", "summary", "facts", "memory", "settings"):
                widgets[name] = _html(name)
    return widgets


def _side(widgets: dict[str, Any]) -> None:
    _html("brand", f'<span class="mark" aria-hidden="true"></span><strong>{TITLE}</strong>')
    widgets["new"] = gr.HTML(
        new_chat_html("en"), elem_id="new-chat", js_on_load=None, apply_default_css=False
    )
    widgets["search"] = _html("search-box")
    widgets["conversations"] = _html("conversations")
    widgets["titles"] = _html("documents-title")
    widgets["documents"] = _html("documents")
    widgets["upload"] = _html("upload")
    widgets["foot"] = _html("side-foot")


def _main(widgets: dict[str, Any]) -> None:
    widgets["top"] = _html("top")
    widgets["chat"] = gr.Chatbot(
        elem_id="chat",
        show_label=False,
        container=False,
        height="100%",
        buttons=[],
        layout="bubble",
        group_consecutive_messages=False,
        allow_tags=False,
        allow_file_downloads=False,
        latex_delimiters=_LATEX,
        feedback_options=None,
    )
    widgets["status"] = _html("status")
    widgets["msg"] = gr.Textbox(
        elem_id="msg",
        show_label=False,
        container=False,
        lines=1,
        max_lines=8,
        interactive=True,
        autofocus=True,
        submit_btn=True,
        stop_btn=False,
        html_attributes=gr.InputHTMLAttributes(enterkeyhint="send"),
    )
    widgets["meter"] = _html("meter")


def _html(elem_id: str, value: str = "") -> gr.HTML:
    return gr.HTML(value, elem_id=elem_id, js_on_load=None, apply_default_css=False)
