"""The prompt, the lists and the panel as HTML. No browser and no server."""

from __future__ import annotations

import re
from dataclasses import replace

from chatbot.engine.base import EngineInfo, EngineStatus
from chatbot.messages import (
    Conversation,
    Fact,
    FoldDecision,
    MemoryFigures,
    RollingSummary,
    Usage,
)
from chatbot.settings import Settings
from chatbot.store_queries import ConversationInfo
from chatbot.ui import lists, machine_html, memory_html, panel
from chatbot.ui.fragments import fold_html
from chatbot.ui.i18n import LANGUAGES
from chatbot.ui.ingest_jobs import JobRow
from chatbot.ui.options_html import Form, options_html
from chatbot.ui.prompt_html import counts_line, trace_html
from chatbot.ui.source_html import source_html
from chatbot.ui.status_html import status_html
from retrieval.types import DocumentInfo
from tests.ui.samples import NASTY, SOURCE, Tags, is_inert, trace, turn


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
            status_html(language, EngineStatus("loading", NASTY, 0.4)),
            status_html(language, EngineStatus("failed", NASTY), to_demo=True, is_saved=True),
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
            panel.foot_html(language, NASTY),
            panel.tabs_html(language),
            panel.words_html(language),
            fold_html(language, summary),
        ]
        for html in pieces:
            is_inert(html)
    assert "10.0" in machine_html.machine_html("en", machine, [spent], {})
    assert status_html("en", EngineStatus("ready")) == ""
