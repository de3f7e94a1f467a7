"""The page's pure functions: views, escaping, both languages. No browser and no server."""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from chatbot.engine.base import EngineInfo, EngineStatus
from chatbot.messages import (
    Conversation,
    Dropped,
    Fact,
    FoldDecision,
    MemoryFigures,
    Message,
    Notice,
    PromptTrace,
    RollingSummary,
    Segment,
    Turn,
    Usage,
)
from chatbot.settings import Settings
from chatbot.store_queries import ConversationInfo
from chatbot.ui import lists, machine_html, memory_html, panel
from chatbot.ui.calls import Call, checked_id
from chatbot.ui.desk import Desk, Tab
from chatbot.ui.escape import escape_html, literal_markdown, safe_markdown
from chatbot.ui.export import file_name
from chatbot.ui.fragments import fold_html, welcome_html
from chatbot.ui.i18n import LANGUAGES, notice_text, pick_language, reason_text, table, tr
from chatbot.ui.ingest_jobs import JobRow
from chatbot.ui.options_html import Form, options_html
from chatbot.ui.prompt_html import KINDS, counts_line, trace_html
from chatbot.ui.pump import Pump
from chatbot.ui.replies import advanced
from chatbot.ui.source_html import source_html
from chatbot.ui.view import LiveReply, Welcome, first_shown, marked, view
from retrieval.types import Citation, DocumentInfo

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


# ---- escaping ----


def test_html_escape_is_literal_also_in_attributes_and_templates() -> None:
    is_inert(f'<p title="{escape_html(NASTY)}">{escape_html(NASTY)}</p>')
    assert Tags(f"<p>{escape_html(NASTY)}</p>").text == NASTY


@pytest.mark.parametrize("text", ["a < b", NASTY, "AT&amp;T", "![x](https://evil/?q=1)", "<b>"])
def test_no_tag_entity_or_image_survives_outside_code(text: str) -> None:
    shown = safe_markdown(text)
    assert "<" not in shown.replace("`<", "")
    assert "![" not in shown
    assert not re.search(r"&(?!#x000[0-9a-f]{2};)", shown.split("`")[0])


@pytest.mark.parametrize(
    "code",
    [
        "```python\nx: List<int> = a & b\n```",
        "~~~\n<b>\n```\n~~~",
        "- item\n  ```\n  <b>\n  ```",
        "`List<int>` and ``a ` <b>``",
        "````\n```\n<i>\n```\n````",
        "```\nopen <b> while streaming",
    ],
)
def test_code_is_left_as_it_is(code: str) -> None:
    assert safe_markdown(code).replace("&#x00026;", "") == code


def test_text_around_code_is_escaped_and_unclosed_ticks_open_nothing() -> None:
    shown = safe_markdown("a <b> `c<d>` <e>\n\n`not closed <f>\n\nnext <g>` end")
    assert "`c<d>`" in shown
    assert shown.count("<") == 1


def test_an_escaped_tick_starts_no_code() -> None:
    assert "<" not in safe_markdown(r"\`<b>\` and <i>")


def test_indented_code_becomes_fenced_and_keeps_its_indent() -> None:
    shown = safe_markdown("text\n\n    def f():\n        return <b>\n\n    more\nafter <i>")
    lines = shown.split("\n")
    assert "        return <b>"[4:] in lines
    assert lines[-1] == "after &#x0003c;i>"
    assert sum(line.startswith("~~~~~~") for line in lines) == 2


def test_questions_show_markup_and_indents_literally() -> None:
    shown = literal_markdown("# no *title*\n    x = 1\n1. no list\n<b>")
    assert not set("#*<>_[`").intersection(re.sub(r"&#x[0-9a-f]{5};", "", shown))
    assert "\n\u00a0\u00a0\u00a0\u00a0x" in shown
    assert not re.search(r"(?m)^\d+\.", shown)


# ---- views ----


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


# ---- the prompt ----


def test_the_folded_line_counts_tokens_passages_and_recalled_turns() -> None:
    assert counts_line("en", trace(prompt_tokens=1432)) == (
        "Prompt 1,432 of 2,048 tokens, 2 passages, 1 recalled, 16 % reused, 1 left out"
    )
    bare = trace(segments=(), dropped=(), reused_tokens=0, prompt_tokens=9)
    assert counts_line("en", bare) == "Prompt 9 of 2,048 tokens"
    assert "2,048" in counts_line("ko", bare)


def test_the_prompt_shows_every_piece_with_tokens_and_what_was_left_out() -> None:
    html = trace_html("en", trace())
    is_inert(html)
    text = Tags(html).text
    assert html.count('class="piece"') == 6
    for tokens in ("40 tokens", "300 tokens", "90 tokens", "20 tokens", "50 tokens"):
        assert tokens in text
    assert "no room <b>" in text and f"Text {NASTY}" in text and "pages 2 to 3" in text
    assert "1,588" in text, "what is still free"


def test_the_bar_never_leaves_its_frame() -> None:
    over = trace(limit_tokens=100)
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%", trace_html("en", over))]
    assert sum(widths) <= 100.1


# ---- lists and panel ----


def test_empty_chats_are_listed_only_where_they_are_open() -> None:
    begun = ConversationInfo("begun", "", "now", 1)
    named = ConversationInfo("named", "Plans", "now", 0)
    empty, opened = (ConversationInfo(name, "", "now", 0) for name in ("empty", "opened"))
    listed = lists.worth_listing([begun, named, empty, opened], {"opened", ""})
    assert listed == [begun, named, opened]


def test_the_demo_model_is_named_once() -> None:
    def chip(model: str) -> str:
        info = EngineInfo(model, 2048, is_demo=True)
        return Tags(
            panel.top_html("en", "Title", machine_html.Machine(EngineStatus("ready"), info))
        ).text

    assert chip("demo").count("demo") == 1
    assert chip("org/small").count("small") == 1 and chip("org/small").count("demo") == 1


def test_lists_and_panel_escape_titles_names_and_messages() -> None:
    listed = [ConversationInfo("c1", NASTY, "now", 1), ConversationInfo("c2", "", "now", 1, True)]
    document = DocumentInfo(
        "d1", NASTY, "pdf", 3, 4, 1234, 99, "0", "now", removed_lines=6, warnings=(NASTY,)
    )
    over = (JobRow(state, NASTY, state, message=NASTY) for state in ("note", "error"))
    jobs = (JobRow("j1", NASTY, "embed", 0.5), *over)
    machine = machine_html.Machine(EngineStatus("ready"), EngineInfo(NASTY, 2048, is_demo=True))
    fact = Fact(NASTY, "t1", "m1", id=NASTY, earlier=NASTY, edited=True, pinned=True)
    summary = RollingSummary(NASTY, 3, 9, (fact,))
    decision = FoldDecision("now", 3, False, None, (f"invented: {NASTY}", NASTY), NASTY)
    folded = Conversation("c1", NASTY, (turn(1),), summary)
    spent = turn(1, usage=Usage(10, 0, 20, 0.5, 2.0, ladder=("evict_idle", NASTY)))
    machine = replace(machine, figures=MemoryFigures(9, 8, 99, {"c1": 8}, 7, 60, 70, 5, 6, 7, 99))
    for language in LANGUAGES:
        pieces = [
            lists.conversations_html(language, listed, "c1", {"c2"}),
            lists.documents_html(language, [document], ["d1"], jobs),
            panel.top_html(language, NASTY, machine),
            panel.status_html(language, EngineStatus("loading", NASTY, 0.4)),
            panel.status_html(language, EngineStatus("failed", NASTY)),
            panel.meter_html(language, trace()),
            panel.context_html(language, trace()),
            memory_html.summary_html(language, folded, [decision]),
            memory_html.facts_html(language, folded),
            machine_html.machine_html(language, machine, [spent], {"c1": NASTY}),
            options_html(language, Form(Settings(model=NASTY), {}, {"seed": NASTY}, NASTY)),
            source_html(language, SOURCE, f"{NASTY} {SOURCE.quote} {NASTY}"),
            source_html(language, SOURCE, None),
            panel.draft_meter_html(language, None, 9, 9, NASTY),
            panel.draft_meter_html(language, trace(), 460, 2048),
            panel.search_html(language, NASTY),
            panel.foot_html(language),
            panel.tabs_html(language),
            panel.words_html(language),
            fold_html(language, summary),
        ]
        for html in pieces:
            is_inert(html)
    assert "10.0" in machine_html.machine_html("en", machine, [spent], {})
    assert panel.status_html("en", EngineStatus("ready")) == ""


# ---- languages ----


def test_both_tables_have_the_same_keys_and_blanks() -> None:
    english, korean = table("en"), table("ko")
    assert english.keys() == korean.keys()
    for key in english:
        assert blanks(english[key]) >= blanks(korean[key]), key
        assert english[key].strip() and korean[key].strip()


def blanks(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_every_kind_and_finish_has_words() -> None:
    for kind in KINDS:
        assert tr("ko", f"kind.{kind}")


@pytest.mark.parametrize(
    ("chosen", "setting", "accept", "language"),
    [
        ("", "auto", "ko-KR,ko;q=0.9,en;q=0.8", "ko"),
        ("", "auto", "fr,en;q=0.8,ko;q=0.5", "en"),
        ("", "auto", "fr", "en"),
        ("", "ko", "en", "ko"),
        ("en", "ko", "ko", "en"),
        ("<script>", "auto", "", "en"),
    ],
)
def test_language_choice(chosen: str, setting: str, accept: str, language: str) -> None:
    assert pick_language(chosen=chosen, setting=setting, accept=accept) == language


def test_notices_are_translated_and_unknown_ones_keep_their_sentence() -> None:
    known = Notice("documents_passages", "English.", {"passages": 2, "found": 1200})
    assert "1,200" in notice_text("ko", known)
    assert notice_text("ko", Notice("documents_passages", "English.", {})) == "English."
    assert notice_text("ko", Notice("new_code", "English.")) == "English."


def test_reasons_are_translated_with_their_numbers() -> None:
    reason = "1200 oldest turns: folded into the summary, and searched"
    assert "1,200" in reason_text("ko", reason) and "요약" in reason_text("ko", reason)
    assert reason_text("ko", "no room") == "자리가 없음"
    assert reason_text("ko", "another reason") == "another reason"
    many = trace(dropped=(Dropped(Segment("turn", 0, ""), reason),))
    assert 'class="piece many"' in trace_html("en", many)


# ---- tabs and events ----


def test_one_reply_at_a_time_in_a_conversation_and_each_tab_stops_its_own() -> None:
    desk = Desk()
    first = desk.claim("c1", "tab1", LiveReply("a"))
    other = desk.claim("c2", "tab2", LiveReply("b"))
    assert first and other and desk.claim("c1", "tab2", LiveReply("x")) is None
    desk.leave("tab1")
    assert first.stop.is_set() and not other.stop.is_set()
    desk.release(first)
    desk.release(first)
    assert desk.claim("c1", "tab2", LiveReply("x"))


def test_tabs_do_not_share_what_they_show() -> None:
    desk = Desk()
    desk.show("tab1", Tab("c1", "ko"))
    assert desk.tab("tab2") == Tab() and desk.tab("tab1").conversation_id == "c1"
    assert desk.more("tab1").shown == 60


def test_events_move_a_live_reply_on() -> None:
    from chatbot.chat import ContextReady, NoticeEvent, Queued, TurnDone
    from chatbot.engine.base import TextDelta

    live = advanced(LiveReply("q"), Queued(3))
    assert (live.phase, live.position) == ("waiting", 3)
    live = advanced(advanced(live, ContextReady(trace())), NoticeEvent(Notice("a", "b")))
    assert live.phase == "reading" and live.trace and live.notices
    live = advanced(advanced(live, TextDelta("one ")), TextDelta("two"))
    assert (live.phase, live.text) == ("writing", "one two")
    assert advanced(live, TurnDone(turn(1))) == live


@pytest.mark.parametrize("bad", ["../x", "a/b", "", None, 7, ["a"], "a b", "x" * 101, "a\n"])
def test_ids_of_another_form_are_refused(bad: object) -> None:
    assert checked_id(bad) == ""
    assert Call("s", "o", data={"id": bad}).id() == ""


def test_a_pump_hands_on_items_errors_and_the_end_and_stops_its_source() -> None:
    pump = Pump((n for n in (1, 2)), lambda: None)
    assert [pump.next(5), pump.next(5)] == [1, 2]
    for _ in range(2):
        with pytest.raises(StopIteration):
            pump.next(5)
    pump.close()

    stop = threading.Event()

    def endless() -> Iterator[int]:
        yield 1
        stop.wait()
        raise ValueError("stopped")

    pump = Pump(endless(), stop.set)
    assert pump.next(5) == 1 and pump.next(0.01) is None
    pump.close()
    with pytest.raises(ValueError, match="stopped"):
        pump.next(5)


# ---- export ----


def test_the_name_of_an_export_fits_every_file_system() -> None:
    made = Conversation("c", 'a/b:"c" <대화>')
    assert file_name(made, "md") == "a b c 대화.md"
    assert file_name(Conversation("c"), "json") == "chat.json"
