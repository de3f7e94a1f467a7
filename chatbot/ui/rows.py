"""Rows of a view as the messages that the Chatbot sends. Knows no conversation.

The library would make a new component for each piece of HTML in each update, and then walk through
its thirty properties twice, which took most of the time of an update. All of ours are alike but for
their text, and the page needs few of the properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradio.components.chatbot import ComponentMessage, Message, TextMessage

from chatbot.ui.view import Part

_PROPERTIES: dict[str, Any] = {
    "html_template": "${value}",
    "css_template": "",
    "js_on_load": None,
    "apply_default_css": False,
    "visible": True,
    "container": False,
    "padding": False,
    "props": {},
}


def messages(parts: Sequence[Part]) -> list[Message]:
    """Finished messages: the library passes them on as they are."""
    return [Message(role=part.role, content=[_content(part)]) for part in parts]


def _content(part: Part) -> ComponentMessage | TextMessage:
    if not part.is_html:
        # A plain string would lose its indentation.
        return TextMessage(text=part.text)
    return ComponentMessage(
        component="html",
        value=part.text,
        constructor_args={},
        props={**_PROPERTIES, "value": part.text},
    )
