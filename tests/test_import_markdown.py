"""Chats that were saved as Markdown come back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatbot.errors import InputError
from chatbot.export_markdown import as_markdown
from chatbot.import_markdown import looks_like_chat, parse_markdown
from chatbot.messages import (
    Conversation,
    Message,
    Turn,
)
from retrieval.types import Citation


def turn(number: int, **more: object) -> Turn:
    asked = Message(
        f"u{number}", "user", f"Question {number}?", created="2026-01-02T03:04:05+00:00"
    )
    made = Turn(f"t{number}", (asked,), (Message(f"a{number}", "assistant", f"Reply {number}."),))
    return replace(made, **more)  # type: ignore[arg-type]


def test_markdown_that_was_saved_here_comes_back() -> None:
    nasty = "## A heading\n\n## 7. You `fake`\n- [x] list\n```\n# code\n```"
    asked = Message("u1", "user", nasty, created="2026-01-02T03:04:05.000006+00:00")
    cited = turn(2, citations=(Citation("1", "a.pdf", "d", 2, 12, 17, "words"),))
    chat = Conversation(
        "c", "Title & <b>", (Turn("t1", (asked,), (Message("a1", "assistant", "A\n\n  b"),)), cited,
        turn(3, assistant=(), finish="error")),
    )  # fmt: skip
    for language in ("en", "ko"):
        back = parse_markdown(as_markdown(chat, language))
        assert back.title == "Title & <b>" and len(back.turns) == 3
        for before, after in zip(chat.turns, back.turns, strict=True):
            assert (after.user, after.assistant) == (before.user, before.assistant)


@pytest.mark.parametrize("text", ["", "# Title\n\nwords", "## 1. You no id"])
def test_other_markdown_is_refused(text: str) -> None:
    assert not looks_like_chat(text)
    with pytest.raises(InputError, match="no message"):
        parse_markdown(text)
