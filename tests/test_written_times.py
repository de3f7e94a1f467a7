"""What is read as a time, in both languages, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from chatbot.export_markdown import as_markdown
from chatbot.export_messages import export_conversation
from chatbot.import_chatgpt import parse_chatgpt
from chatbot.import_markdown import parse_markdown
from chatbot.import_messages import parse_messages
from chatbot.messages import Conversation, Message, Turn
from chatbot.written_times import read_time, seconds_of


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-15T10:00:00Z", "2024-03-15", "20240315", "2024-03", "1999", "March 2024",
        "2024-03-15 10:00:00.123456789+00:00", "2024-03-15 10:00 UTC", "2023/05/20 (Sat) 02:21",
        "March-03-2024", "1:56 pm on 8 May, 2023", "May 5th, 2024 at 3:04 PM", "3/15/24",
        "Fri, 15 Mar 2024 10:00:00 +0900", "Fri Mar 15 10:00:00 2024", "[15/03/24, 14:30:00]",
        "Fri Mar 15 2024 10:00:00 GMT+0900 (Korean Standard Time)", "14:30", "3 pm",
        "2024년 3월 15일 오후 2:30", "2024. 3. 15. 오후 2:30", "24년 3월 5일", "3월 15일",
        "2024년 3월", "오후 2시 30분", "2024년 3월 15일 금요일",
    ],
)  # fmt: skip
def test_times_in_many_forms_stay_as_they_are(text: str) -> None:
    assert read_time(f" {text}\n") == text


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "yesterday", "never", "soon", "just now", "3 days ago", "tomorrow 10:00", "May I",
        "May", "Sunday", "null", "Invalid Date", "12345", "1 2 3", "99:99", "2024-13-45", "-", "٣",
        "2024-02-30", "0000-00-00", "2024-03-15T25:61:00", "2024-03-15 or so", "x" * 5000,
        "어제", "방금", "내일", "지난주 월요일", "어제 오후 3시", "5시간 전", "2024-03-15 이후",
        None, True, [], {}, float("nan"), float("inf"), 10**400, "9" * 60,
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_no_time(value: object) -> None:
    assert read_time(value) is None
    assert seconds_of(value) == 0


@pytest.mark.parametrize("number", [1700000000, 1.7e12, 1700000000000000, "1700000000"])
def test_numbers_count_from_1970(number: object) -> None:
    assert read_time(number) == "2023-11-14T22:13:20.000+00:00"
    assert seconds_of(number) == seconds_of("2023-11-14T22:13:20") == 1.7e9


def test_an_import_takes_over_no_time_that_is_none_and_says_so() -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "a", "created": "yesterday"},
        {"role": "assistant", "content": "b", "created": "2024-03-15"},
    ]
    told: list[str] = []
    chat = parse_messages({"messages": said, "created": "언젠가", "updated": ""}, told)
    assert (chat.created, chat.updated, chat.turns[0].created) == ("", "", "")
    assert [m.created for t in chat.turns for m in (*t.user, *t.assistant)] == [None, "2024-03-15"]
    assert told == ["Times that cannot be read were left out: 2."]
    mapping = {"u": {"message": {"author": {"role": "user"}, "content": "a"}, "parent": None}}
    mapping["u"]["message"]["create_time"] = "never"  # type: ignore[index]
    read = parse_chatgpt({"mapping": mapping, "create_time": "yesterday", "update_time": ""})
    assert (read.chats[0].created, read.chats[0].turns[0].user[0].created) == ("", None)
    assert read.changed == ("[0]: Times that cannot be read were left out: 2.",)


def test_exports_of_times_that_are_none_come_back_without_them() -> None:
    message = Message("u", "user", "a", created="soon")
    chat = Conversation("c", "T", (Turn("t", (message,), created="soon"),), created="어제")
    for back in (
        parse_messages(export_conversation(chat)),
        parse_markdown(as_markdown(chat)),
        parse_markdown("# T\n\n- id: `c`\n\n## 1. You, 2026-99-99 `u`\n\na\n"),
    ):
        assert (back.created, back.turns[0].created, back.turns[0].user[0].created) == (
            "",
            "",
            None,
        )
