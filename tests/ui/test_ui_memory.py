"""Summary, facts, versions, sources and the meter as HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatbot.messages import (
    Conversation,
    Dropped,
    Fact,
    FoldDecision,
    Notice,
    PromptTrace,
    RollingSummary,
    Segment,
    Version,
)
from chatbot.ui.fragments import reply_foot_html
from chatbot.ui.i18n import Language, why_text
from chatbot.ui.lists import documents_html, shares_of
from chatbot.ui.memory_html import facts_html, summary_html
from chatbot.ui.panel import draft_meter_html
from chatbot.ui.source_html import extent, find_quote, source_html
from retrieval.types import Citation, DocumentInfo, PageSpan
from tests.ui.samples import dated_turn as turn
from tests.ui.samples import text_of


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


@pytest.mark.parametrize(
    ("language", "when", "none"),
    [("en", "Once older turns are folded", "folded turns have none"),
     ("ko", "오래된 대화가 요약되면", "요약된 대화에는 없습니다")],
)  # fmt: skip
def test_an_empty_list_of_facts_says_when_there_will_be_some(
    language: Language, when: str, none: str
) -> None:
    """Nothing is folded after one turn, which looked as if nothing had been understood."""
    chat = Conversation("c", turns=(turn(1),))
    assert when in facts_html(language, chat) and none not in facts_html(language, chat)
    folded = replace(chat, summary=RollingSummary("Gist.", 1, 5))
    assert none in facts_html(language, folded)


def test_a_refused_summary_says_why_until_one_is_kept() -> None:
    refused = FoldDecision("2026", 3, False, None, ("invented: Bob", "breaks off"), "Bob")
    kept = FoldDecision("2026", 3, True, "model", ())
    chat = Conversation("c", summary=RollingSummary("Gist.", 3, 5, origin="extractive"))
    html = summary_html("en", chat, [kept, refused])
    assert 'data-code="summary_refused"' in html and "sentences of the turns" in html
    assert "invented, not in the turns: Bob; breaks off" in html
    assert "summary_refused" not in summary_html("en", chat, [refused, kept])
    assert why_text("ko", "over its cap: 300 of 256 tokens") == "너무 긺: 300 토큰 (기준 256)"
    assert why_text("ko", "something new: x") == "something new: x"


def test_versions_have_arrows_that_end_at_the_first_and_last() -> None:
    versions = [Version(f"t{n}", "q", "r", "", 1, n == 1) for n in (1, 2, 3)]
    html = reply_foot_html(turn(1), "en", None, is_last=False, versions=versions)
    assert "1/3" in html and html.count('data-act="version"') == 2
    assert 'data-act="version" disabled' in html and 'data-act="version" data-id="t2"' in html
    assert "version" not in reply_foot_html(
        turn(1), "en", None, is_last=False, versions=versions[:1]
    )


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
