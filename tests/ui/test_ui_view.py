"""From a conversation to the rows of the chat. No browser and no server."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from chatbot.messages import (
    Conversation,
    Notice,
    RollingSummary,
)
from chatbot.ui.escape import safe_markdown
from chatbot.ui.fragments import welcome_html
from chatbot.ui.i18n import tr
from chatbot.ui.lists import documents_html
from chatbot.ui.view import LiveReply, Welcome, first_shown, marked, view
from retrieval.types import Citation, DocumentInfo
from tests.ui.samples import NASTY, SOURCE, Tags, is_inert, trace, turn


def test_a_conversation_becomes_rows_with_the_ids_of_their_turns() -> None:
    seen = view(Conversation("c", turns=(turn(1), turn(2))), language="en")
    assert [(part.role, part.is_html) for part in seen.parts] == [
        ("user", False), ("assistant", False), ("assistant", True),
    ] * 2  # fmt: skip
    assert seen.turn_ids == ("t1",) * 3 + ("t2",) * 3


def test_only_the_newest_turns_are_shown_with_a_way_to_the_rest() -> None:
    turns = tuple(turn(n) for n in range(1, 41))
    seen = view(Conversation("c", turns=turns), language="en", shown=10)
    assert "30 more" in seen.parts[0].text
    assert [i for i in dict.fromkeys(seen.turn_ids) if i] == [f"t{n}" for n in range(31, 41)]


def test_a_new_turn_moves_the_first_one_shown_only_now_and_then() -> None:
    assert [first_shown(count, 30) for count in (0, 30, 39, 40, 49, 50, 1000, 1009)] == [
        0, 0, 0, 10, 10, 20, 970, 970,
    ]  # fmt: skip


def test_the_fold_line_stands_after_the_turns_that_the_summary_covers() -> None:
    summary = RollingSummary(f"Gist {NASTY}", 2, 30, origin="extractive")
    turns = tuple(turn(n) for n in range(1, 5))
    seen = view(Conversation("c", turns=turns, summary=summary), language="en")
    place = next(i for i, part in enumerate(seen.parts) if "foldline" in part.text)
    assert seen.turn_ids[place - 1] == "t2" and seen.turn_ids[place + 1] == "t3"
    is_inert(seen.parts[place].text)
    assert "oldest 2 turns" in seen.parts[place].text


def test_nasty_text_is_literal_everywhere_under_a_reply() -> None:
    made = turn(
        1, NASTY, NASTY, citations=(SOURCE,), best_sentence=replace(SOURCE, start=9, quote=NASTY),
        unsupported=(NASTY,), trace=trace(), notices=(Notice("x", NASTY),),
    )  # fmt: skip
    for part in view(Conversation("c", turns=(made,)), language="ko").parts:
        if part.is_html:
            is_inert(part.text)
        else:
            assert "<" not in part.text.replace('<mark class="unsupported">', "").replace(
                "</mark>", ""
            )


def test_sources_show_label_document_pages_and_words_and_no_quote_twice() -> None:
    other = Citation("2", "b.txt", "d2", None, 0, 4, "Word")
    made = turn(1, citations=(SOURCE, other), best_sentence=SOURCE)
    html = view(Conversation("c", turns=(made,)), language="en").parts[-1].text
    text = Tags(html).text
    assert "pages 3 to 4" in text and "Word" in text and text.count("Quote") == 1


@pytest.mark.parametrize("finish", ["length", "cancelled", "error", "interrupted", "memory"])
def test_an_odd_end_is_said_and_the_last_turn_can_be_retried(finish: str) -> None:
    made = turn(1, reply="", finish=finish)
    parts = view(Conversation("c", turns=(made,)), language="en").parts
    assert tr("en", f"finish.{finish}") in Tags(parts[-1].text).text
    assert 'data-act="retry"' in parts[-1].text
    assert 'data-act="copy"' not in parts[-1].text


def test_an_error_is_told_in_its_own_words() -> None:
    notice = Notice("reply_failed", "The disk is full <b>.")
    made = turn(1, reply="", finish="error", notices=(notice,))
    html = view(Conversation("c", turns=(made,)), language="ko").parts[-1].text
    assert Tags(html).text.count("The disk is full <b>.") == 1


def test_only_the_last_turn_offers_retry() -> None:
    seen = view(Conversation("c", turns=(turn(1), turn(2))), language="en")
    assert sum('data-act="retry"' in part.text for part in seen.parts) == 1
    assert 'data-act="retry"' in seen.parts[-1].text


def test_a_running_reply_replaces_its_stored_turn_and_a_retry_the_old_one() -> None:
    turns = (turn(1), turn(2, reply="old"), turn(3, "now", "", finish="running"))
    live = LiveReply("now", phase="writing", text="so <far>")
    seen = view(Conversation("c", turns=turns), language="en", live=live)
    assert seen.parts[-1].text == "so &#x0003c;far>" and "t3" not in seen.turn_ids
    again = LiveReply("Question?", turn_id="t2", phase="reading")
    seen = view(Conversation("c", turns=turns[:2]), language="en", live=again)
    assert not any("old" in part.text for part in seen.parts)


@pytest.mark.parametrize(
    ("live", "words"),
    [
        (LiveReply("q", phase="waiting", position=2), "2 replies come first"),
        (LiveReply("q", phase="waiting"), "Starting"),
        (LiveReply("q", phase="documents", document="<b>.pdf"), "Still reading <b>.pdf"),
        (LiveReply("q", phase="loading"), "model to load"),
        (LiveReply("q", phase="reading", trace=trace()), "460 tokens"),
    ],
)
def test_a_reply_without_text_says_what_it_waits_for(live: LiveReply, words: str) -> None:
    assert words in Tags(view(None, language="en", live=live).parts[-1].text).text


def test_an_empty_chat_says_plainly_that_the_model_is_a_small_demo() -> None:
    html = view(None, language="en", welcome=Welcome(is_demo=True)).parts[0].text
    assert "small English demo model" in html and "--model" in html
    assert "demo-note" not in view(None, language="en", welcome=Welcome()).parts[0].text
    assert "데모" in welcome_html("ko", True, False)


def test_a_statement_that_is_said_twice_is_marked_twice() -> None:
    reply = "Deer live. Deer. So it is. Deer."
    assert safe_markdown(marked(reply, ("Deer.", "Deer."))).count("<mark") == 2


def test_documents_that_a_chat_does_not_use_are_told_where_it_is_empty_and_over_the_list() -> None:
    html = view(None, language="en", welcome=Welcome(unused_documents=3)).parts[0].text
    assert "none of your 3 documents" in html and 'data-act="use-all"' in html
    assert "use-all" not in view(None, language="en", welcome=Welcome()).parts[0].text
    assert "하나도 사용하지" in welcome_html("ko", False, False, 3)
    rows = [DocumentInfo(name, name, "md", 1, 2, 9, 9, "", "") for name in ("d1", "d2")]
    assert "use-all" in documents_html("en", rows, [], ())
    assert "use-all" not in documents_html("en", rows, ["d2"], ())
    assert "use-all" not in documents_html("en", [], [], ())


def test_unsupported_statements_are_marked_where_that_keeps_the_markdown() -> None:
    reply = "Fact one. Fact <two>.\n- a `code` b\nlast"
    shown = safe_markdown(marked(reply, ("Fact <two>.", "a `code` b", "not there", "one.\nlast")))
    assert shown.count('<mark class="unsupported">') == 1
    assert '<mark class="unsupported">Fact &#x0003c;two>.</mark>' in shown


def test_a_mark_leaves_lists_and_headings_as_they_are() -> None:
    reply = "1. Wear gloves.\n- Be quick."
    shown = safe_markdown(marked(reply, ("1. Wear gloves.", "- Be quick.")))
    assert re.sub("</?mark[^>]*>", "", shown) == reply
    assert shown.startswith("1. <mark") and "\n- <mark" in shown


def test_forged_marks_in_a_reply_are_dropped() -> None:
    assert safe_markdown(marked("\ue000x\ue001", ())) == "x"
