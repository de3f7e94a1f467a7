"""Chats that were saved as Markdown come back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from chatbot.errors import InputError
from chatbot.export_markdown import as_markdown
from chatbot.import_markdown import looks_like_chat, not_read, parse_markdown
from chatbot.messages import (
    Conversation,
    Fact,
    FoldDecision,
    Message,
    Role,
    RollingSummary,
    Turn,
)
from chatbot.ui.chat_files import read_chats
from chatbot.ui.inbox import Waiting
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
        "c", "Title & <b>",
        (Turn("t1", (asked,), (Message("a1", "assistant", "A\n\n  b"),), finish="cancelled"), cited,
        turn(3, assistant=(), finish="error")),
    )  # fmt: skip
    for language in ("en", "ko"):
        saved = as_markdown(chat, language)
        assert saved.count("(cancelled).*") == 1, "a reply that was stopped does not look whole"
        back = parse_markdown(saved)
        assert back.title == "Title & <b>" and len(back.turns) == 3
        for before, after in zip(chat.turns, back.turns, strict=True):
            assert (after.user, after.assistant) == (before.user, before.assistant)


@pytest.mark.parametrize("text", ["", "# Title\n\nwords", "## 1. You no id"])
def test_other_markdown_is_refused(text: str) -> None:
    assert not looks_like_chat(text)
    with pytest.raises(InputError, match="no message"):
        parse_markdown(text)


LINES = (
    "", " ", "words", "```", "\\", "**Sources**", "**출처**", "- [1] a.pdf, 3: quote",
    "No reply (stopped).", "*The reply ends here (cancelled).*", "답변 없음 (error).",
    "## 2. You `m9` ", "## 2. You `m9`",
    "\\## 1. Assistant `a`", "\\\\**Sources**", "## How the summary came to be", "- form: 2",
    "## 요약이 만들어진 과정", "## 1. First", "# Title", "\ufeff",
    "## Facts", "\\## Facts", "## Instructions", "## 1~3번째 차례의 요약", "- id: `x`", "## 메모",
)  # fmt: skip
ENDS = st.sampled_from(("\n", "\n\n", "\r\n", "\r", "\u2028", "\x0b", "\x85", "\x0c"))
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
CONTENTS = st.lists(
    st.tuples(st.sampled_from(LINES) | st.text(CHARACTERS, max_size=6), ENDS), max_size=5
).map(lambda pairs: "".join(line + end for line, end in pairs))
NAMES = st.none() | st.sampled_from(
    (
        "Assistant",
        "You",
        "나",
        "도우미",
        "Kim",
        "a), 2024",
        "b `c`",
        "x, 2026-01-02",
        "(",
        "You (A)",
    )
)
WORDS = st.text(CHARACTERS, min_size=1, max_size=4)


@st.composite
def chats(draw: st.DrawFn) -> Conversation:
    def messages(role: Role, least: int) -> tuple[Message, ...]:
        times = st.sampled_from((None, "2026-01-02T03:04:05+00:00", "5 May (2026)", "2026-01-02 `"))
        one = st.builds(Message, WORDS, st.just(role), CONTENTS, NAMES, times)
        return tuple(draw(st.lists(one, min_size=least, max_size=2)))

    turns = st.integers(1, 3)
    cited = st.sampled_from(((), (Citation("1", "a.pdf", "d", 2, 12, 17, "words"),)))
    return Conversation(
        "c", "Title", tuple(
            Turn("t", messages("user", 1), messages("assistant", 0), citations=draw(cited))
            for _ in range(draw(turns))
        ), system_text=draw(st.none() | CONTENTS),
        decisions=(FoldDecision("2026", 1, False, None, ("empty",)),),
    )  # fmt: skip


@hypothesis_settings(max_examples=60, deadline=None, database=None)
@given(chats(), st.sampled_from(("en", "ko")))
def test_odd_chats_come_back_letter_by_letter(chat: Conversation, language: str) -> None:
    back = parse_markdown(as_markdown(chat, language))
    assert [(t.user, t.assistant) for t in back.turns] == [
        (t.user, t.assistant) for t in chat.turns
    ]
    assert (back.id, back.system_text) == ("c", chat.system_text or None)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_its_id_its_beginning_and_its_instructions_come_back_and_the_rest_is_told(
    language: str,
) -> None:
    own = "Be brief.\n\n## Facts\n\n- none"
    whole = Conversation("c `1`", "T", (turn(1),), system_text=own, created="2026-01-02")
    for summary in (None, RollingSummary("S\n## Notes", 1, 1, (Fact("x", "t1", "u1"),))):
        saved = as_markdown(replace(whole, summary=summary), language)
        back = parse_markdown(saved)
        assert (back.id, back.created, back.system_text) == ("c `1`", "2026-01-02", own)
        assert bool(not_read(saved)) == (summary is not None)


def test_a_file_that_another_program_gave_other_ends_of_lines_is_read() -> None:
    saved = as_markdown(Conversation("c", "T", (turn(1),)))
    back = parse_markdown("\ufeff" + saved.replace("\n", "\r\n"))
    assert (back.turns[0].user, back.turns[0].assistant) == (turn(1).user, turn(1).assistant)


OLD = """# T

- id: `c`

## 1. Kim, 2026-01-02T03:04:05+00:00 `u1`

\\**Sources**

## 1. Assistant `a1`

Yes.

**Sources**

- [1] a.pdf, 3: quote

## 2. You `u2`

And?

No reply (error).
"""


def test_exports_of_the_first_form_are_still_read() -> None:
    first, second = parse_markdown(OLD).turns
    asked = Message("u1", "user", "\\**Sources**", "Kim", "2026-01-02T03:04:05+00:00")
    assert first.user == (asked,)
    assert first.assistant == (Message("a1", "assistant", "Yes."),)
    assert (second.user, second.assistant) == ((Message("u2", "user", "And?"),), ())


def test_carriage_returns_in_messages_survive_the_file(tmp_path: Path) -> None:
    chat = Conversation("c", "T", (Turn("t", (Message("u", "user", "a\rb\r\nc\r"),)),))
    file = tmp_path / "chat.md"
    file.write_bytes(as_markdown(chat).encode())
    read = read_chats(Waiting(file, "chat.md", "", 0.0))
    assert read.chats[0].turns[0].user == chat.turns[0].user
