"""Turns, prompts and texts that try to break the page, for its tests; knows no page."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from chatbot.messages import (
    Dropped,
    Message,
    PromptTrace,
    Segment,
    Turn,
)
from retrieval.types import Citation

TAB = "tab1"
"""The session of the tab that a test looks at."""
NASTY = (
    "<name> <style>*{display:none}</style> <img src=x onerror=alert(1)> List<int> & \"'` ${1} {{x}}"
)
SOURCE = Citation("1", NASTY, "d1", 3, 0, 5, f"Quote {NASTY}", page_end=4)


def turn(number: int, question: str = "Question?", reply: str = "Reply.", **more: object) -> Turn:
    turn_id = f"t{number}"
    made = Turn(
        turn_id,
        (Message(f"u{number}", "user", question),),
        (Message(f"a{number}", "assistant", reply),) if reply else (),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def trace(**more: object) -> PromptTrace:
    segments = (
        Segment("system", 40, "Be helpful."),
        Segment("recalled", 10, NASTY),
        Segment("passage", 300, f"Text {NASTY}", document=NASTY, page=2, page_end=3, label="1"),
        Segment("passage", 90, "Second", document="b.txt", label="2"),
        Segment("question", 20, NASTY),
    )
    dropped = (Dropped(Segment("turn", 50, NASTY), "no room <b>"),)
    made = PromptTrace("q", 460, 2048, 512, segments, dropped, reused_tokens=230, query=NASTY)
    return replace(made, **more)  # type: ignore[arg-type]


class Tags(HTMLParser):
    """Collects every tag and attribute that a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def is_inert(html: str) -> None:
    seen = Tags(html)
    assert not {"style", "img", "name", "int", "script", "b>"} & set(seen.tags), seen.tags
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert "${" not in html and "{{" not in html, "inert as a template of the page library"


def text_of(html: str) -> str:
    """The text of a piece of the page, without its tags."""
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html))


def dated_turn(number: int, **more: object) -> Turn:
    """A turn with its number in what is said, asked at a known time."""
    asked = Message(
        f"u{number}", "user", f"Question {number}?", created="2026-01-02T03:04:05+00:00"
    )
    return turn(number, reply=f"Reply {number}.", user=(asked,), **more)
