"""Pure parts of the page that came later: memory, machine, settings, sources, meter, sentences."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from chatbot.engine.base import EngineInfo, EngineStatus
from chatbot.errors import InputError
from chatbot.export_markdown import as_markdown
from chatbot.import_markdown import looks_like_chat, parse_markdown
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
    Version,
)
from chatbot.saved_settings import read_saved, save
from chatbot.settings import Settings, load_settings
from chatbot.ui.fragments import reply_foot_html
from chatbot.ui.i18n import why_text
from chatbot.ui.lists import documents_html, shares_of
from chatbot.ui.machine_html import Machine, live_html, machine_html, size_text
from chatbot.ui.memory_html import facts_html, summary_html
from chatbot.ui.options_html import LIVE, NAMES, Form, cost_of, options_html
from chatbot.ui.panel import draft_meter_html
from chatbot.ui.rows import messages
from chatbot.ui.sentences import in_language
from chatbot.ui.source_html import extent, find_quote, source_html
from chatbot.ui.view import Part
from retrieval.types import Citation, DocumentInfo, PageSpan


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html))


def turn(number: int, **more: object) -> Turn:
    asked = Message(
        f"u{number}", "user", f"Question {number}?", created="2026-01-02T03:04:05+00:00"
    )
    made = Turn(f"t{number}", (asked,), (Message(f"a{number}", "assistant", f"Reply {number}."),))
    return replace(made, **more)  # type: ignore[arg-type]


# ---- memory ----


def test_facts_name_their_turn_their_past_and_who_wrote_them() -> None:
    facts = (
        Fact("We meet on 21 March.", "t2", "u2", id="f1", earlier="We meet on 14 March."),
        Fact("My desk is green.", "", "", id="f2", edited=True, pinned=True),
    )
    chat = Conversation("c", turns=(turn(1), turn(2)), summary=RollingSummary("", 0, 0, facts))
    html = facts_html("en", chat)
    assert 'data-act="goto" data-id="t2"' in html and "turn 2" in html
    assert "before: <s>We meet on 14 March.</s>" in html and "added by you" in html
    assert html.count('aria-pressed="true"') == 1
    assert "added by you" not in facts_html("ko", chat) and facts_html("en", None) == ""


def test_a_refused_summary_says_why_until_one_is_kept() -> None:
    refused = FoldDecision("2026", 3, False, None, ("invented: Bob", "breaks off"), "Bob")
    kept = FoldDecision("2026", 3, True, "model", ())
    chat = Conversation("c", summary=RollingSummary("Gist.", 3, 5, origin="extractive"))
    html = summary_html("en", chat, [kept, refused])
    assert 'data-code="summary_refused"' in html and "sentences of the turns" in html
    assert "invented, not in the turns: Bob; breaks off" in html
    assert "summary_refused" not in summary_html("en", chat, [refused, kept])
    assert why_text("ko", "over its cap: 300 of 256 tokens").endswith(": 300 of 256 tokens")
    assert why_text("ko", "something new: x") == "something new: x"


def test_versions_have_arrows_that_end_at_the_first_and_last() -> None:
    versions = [Version(f"t{n}", "q", "r", "", 1, n == 1) for n in (1, 2, 3)]
    html = reply_foot_html(turn(1), "en", None, is_last=False, versions=versions)
    assert "1/3" in html and html.count('data-act="version"') == 2
    assert 'data-act="version" disabled' in html and 'data-act="version" data-id="t2"' in html
    assert "version" not in reply_foot_html(
        turn(1), "en", None, is_last=False, versions=versions[:1]
    )


# ---- machine ----


def test_the_machine_shows_shares_speed_timeline_and_ladder() -> None:
    figures = MemoryFigures(
        weights_bytes=500 << 20, kv_bytes=20 << 20, kv_bound_bytes=100 << 20,
        kv_by_conversation={"c": 15 << 20, "stranger": 5 << 20}, process_bytes=1 << 30,
    )  # fmt: skip
    usage = Usage(100, 50, 40, 0.25, 2.0, memory=figures)
    turns = [turn(1, usage=usage), turn(2, usage=replace(usage, ladder=("evict_idle",)))]
    machine = Machine(EngineStatus("ready"), EngineInfo("m", 2048), 2048, figures)
    html = machine_html("en", machine, turns, {"c": "Mine"})
    text = text_of(html)
    assert "20.0 tokens/s" in text and "0.25 s" in text and "20.0 MiB of 100 MiB" in text
    assert "Mine 15.0 MiB" in text and "stranger" not in text, "a chat of nobody has no name here"
    assert html.count("<polygon") == 3 and "last 2 turns" in text
    assert "turn 2: Memory ran short, so the caches of other chats were dropped" in text
    assert max(float(w) for w in re.findall(r"width:([\d.]+)%", html)) <= 100
    assert live_html("en", None, {}) == ""


@pytest.mark.parametrize(
    ("size", "text"), [(1 << 30, "1.00 GiB"), (3 << 20, "3.0 MiB"), (2048, "2 KiB")]
)
def test_sizes_read_well(size: int, text: str) -> None:
    assert size_text(size) == text


def test_rows_of_the_chat_stay_small() -> None:
    """An update walks through every value of every row."""
    made = messages([Part("user", "q"), Part("assistant", "<p>x</p>", is_html=True)])
    assert made[1].content[0].value == "<p>x</p>" and made[0].content[0].text == "q"
    leaves = json.dumps(made[1].model_dump()).count(":")
    assert leaves < 25


# ---- settings ----


def test_every_setting_on_the_page_exists_and_says_what_it_costs() -> None:
    assert set(NAMES) <= set(Settings.model_fields) and set(NAMES) >= LIVE
    assert (cost_of("temperature"), cost_of("model"), cost_of("embedding_model")) == (
        "now", "reload", "reembed",
    )  # fmt: skip
    html = options_html("en", Form(Settings(), {"model": "other"}, {"top_p": "9"}, "Be brief."))
    for name in NAMES:
        assert f'data-name="{name}"' in html
    assert "saved; takes effect" in html and "Must be from 0 to 1." in html and "Be brief." in html
    shared = options_html("en", Form(Settings(), names=tuple(LIVE)))
    assert 'data-name="model"' not in shared and 'data-name="threads"' not in shared


def test_saved_settings_count_least_and_nonsense_does_not(tmp_path: Path) -> None:
    save(tmp_path, {"temperature": 0.7, "top_k": 9, "gone": 1})
    loaded = load_settings({"data_dir": str(tmp_path), "top_k": "5"}, environ={})
    assert (loaded.temperature, loaded.top_k) == (0.7, 5)
    (tmp_path / "page-settings.json").write_text("{")
    assert read_saved(tmp_path) == {}
    assert load_settings({"data_dir": str(tmp_path)}, environ={}).temperature == 0


# ---- sources ----

CITED = Citation("1", "a.pdf", "d", 2, 12, 17, "words")


def test_a_source_shows_its_page_only_with_the_words_marked() -> None:
    spans = (PageSpan(1, 0, 10), PageSpan(2, 10, 24), PageSpan(3, 24, 40))
    text = "first page" + "a words here.." + "third page......"
    html = source_html("en", CITED, text, spans)
    assert '<mark class="quoted">words</mark>' in html
    assert "first page" not in html and "third" not in html and "here" in html
    assert extent(12, 17, 40, ()) == (0, 40)
    assert extent(9000, 9005, 20_000, ()) == (6500, 11_505)


def test_words_of_a_replaced_document_are_found_again_or_said_to_be_gone() -> None:
    assert find_quote(CITED, "now the words stand here") == (8, 13)
    assert find_quote(CITED, "nothing of it") is None
    assert "was replaced" in source_html("en", CITED, "nothing of it")
    assert "no longer in the library" in source_html("en", CITED, None)


# ---- meter ----


def trace(*dropped: Dropped) -> PromptTrace:
    return PromptTrace("q", 900, 1000, 100, (), dropped)


def test_the_meter_warns_of_what_would_be_left_out_only() -> None:
    no_room = "no room; searched for what the question needs"
    full = trace(
        Dropped(Segment("turn", 0, ""), f"3 older turns: {no_room}"),
        Dropped(Segment("turn", 0, ""), "9 oldest turns: folded into the summary, and searched"),
        Dropped(Segment("passage", 9, "x"), "no room"),
    )
    text = text_of(draft_meter_html("en", full, 900, 1000))
    assert "900 of 1,000" in text and "no room for 3 older turns, 1 passage" in text
    folded = trace(Dropped(Segment("turn", 0, ""), "9 oldest turns: folded into the summary"))
    assert "no room" not in draft_meter_html("en", folded, 900, 1000)
    assert "more than fits" in draft_meter_html("en", None, 5000, 1000)


def test_documents_say_whether_they_were_whole_in_the_last_prompt() -> None:
    pieces = tuple(Segment("passage", 9, "x", document="a", document_id=d) for d in ("d1", "d1"))
    made = replace(trace(), segments=pieces)
    assert shares_of(made) == {"d1": 2} and shares_of(None) == {}
    whole = replace(made, notices=(Notice("documents_whole", "Whole."),))
    assert shares_of(whole) == {"d1": None}
    row = DocumentInfo("d1", "a", "md", 1, 2, 9, 9, "", "")
    assert "2 passages" in documents_html("en", [row], ["d1"], (), made)
    assert "whole in the prompt" in documents_html("en", [row], ["d1"], (), whole)
    assert "whole" not in documents_html("en", [row], [], (), whole), "it is switched off now"


# ---- sentences ----


def test_sentences_of_other_rooms_are_korean_where_they_are_known() -> None:
    said = "This file has 12.5 MiB, 10 MiB are allowed; split it or raise the limit."
    korean = in_language("ko", said)
    assert "12.5 MiB" in korean and re.search("[가-힣]", korean)
    assert in_language("en", said) == said
    assert (
        in_language("ko", "Something nobody has translated.") == "Something nobody has translated."
    )


def test_every_translated_sentence_keeps_its_blanks() -> None:
    folder = Path(__file__).parent.parent / "chatbot" / "ui" / "locales"
    pairs = json.loads((folder / "sentences.ko.json").read_text("utf-8"))
    for english, korean in pairs.items():
        assert set(re.findall(r"\{(\w+)\}", korean)) <= set(re.findall(r"\{(\w+)\}", english))


# ---- import of Markdown ----


def test_markdown_that_was_saved_here_comes_back() -> None:
    nasty = "## A heading\n\n## 7. You `fake`\n- [x] list\n```\n# code\n```"
    asked = Message("u1", "user", nasty, created="2026-01-02T03:04:05.000006+00:00")
    cited = turn(2, citations=(CITED,))
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
