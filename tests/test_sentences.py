"""Sentence splitting: English, Korean, abbreviations, numbers, lists, code, coverage."""

from __future__ import annotations

import random
import time

import pytest

from retrieval.sentences import sentence_cells, sentences, split_sentences, trim_span

CASES = {
    "plain": ["I live in Oslo.", "Do you?", "Yes!"],
    "abbreviations": ["Dr. Kim met Mr. J. Smith at 3 p.m. on Monday.", "They spoke, e.g. of tea."],
    "decimals": ["It costs 3.5 dollars.", "Version 2.0.1 is out."],
    "url": ["See https://a.example/x.html?q=1.", "It helps."],
    "acronym": ["He lives in the U.S. now.", "She left the U.S.", "The house was sold."],
    "lowercase chat": ["i like tea.", "my name is bob."],
    "ellipsis": ["Well... maybe not.", "Fine."],
    "quote": ['"Really?" he said.', "She nodded."],
    "korean": ["저는 부산에 삽니다.", "이름은 민준이에요!", "알겠죠?"],
    "korean date": ["회의는 2024. 3. 15. 오후에 있습니다.", "장소는 3층입니다."],
    "korean no stop": ["저는 부산에 삽니다", "직업은 교사예요", "매운 음식은 싫어요"],
    "korean quote": ["그는 내일 갑니다 라고 말했다.", "비가 온다."],
    "full width": ["これは本です。", "そうですか？"],
    "inline code": ["Call `a. b` first.", "Then stop."],
    "i": ["So did I.", "He left."],
}


@pytest.mark.parametrize("name", CASES)
def test_split(name: str) -> None:
    wanted = CASES[name]
    joiner = "" if name == "full width" else " "
    assert sentences(joiner.join(wanted)) == wanted


def test_korean_without_space_after_the_stop() -> None:
    assert sentences("어제 갔다.오늘은 쉰다.") == ["어제 갔다.", "오늘은 쉰다."]


def test_lines_headings_lists_and_code() -> None:
    text = "# Title\nFirst point.\n\n1. Buy milk\n2. Call Dr. Lee\n- item\n```\nx = 1. \ny\n```\nE."
    assert sentences(text) == [
        "# Title",
        "First point.",
        "1. Buy milk",
        "2. Call Dr. Lee",
        "- item",
        "```",
        "x = 1.",
        "y",
        "```",
        "E.",
    ]


def test_wrapped_lines_stay_one_sentence() -> None:
    text = "The committee met on the first Monday of the month and\nagreed to wait.\nShort\nNext"
    assert sentences(text) == [
        "The committee met on the first Monday of the month and\nagreed to wait.",
        "Short",
        "Next",
    ]


def test_korean_law_items() -> None:
    text = "제1조(목적) 이 법은 다음을 정한다.\n1. 신청인의 성명\n가. 주소"
    assert sentences(text)[1:] == ["1. 신청인의 성명", "가. 주소"]


@pytest.mark.parametrize("text", ["", " \n\t ", ".", "...", "?!", "한", "```", "```\n", "a\n\n\nb"])
def test_edges(text: str) -> None:
    _check_cover(text)


def test_random_text_is_covered_once() -> None:
    rng = random.Random(5)
    alphabet = [*"ab AB.!? \n`-1가다요니 \"'…。#|\t\u2028\u200b😀", "```\n", "니다 ", "e.g. "]
    for _ in range(500):
        _check_cover("".join(rng.choice(alphabet) for _ in range(rng.randrange(80))))


def test_linear_on_hostile_text() -> None:
    begin = time.process_time()
    for text in ("." * 100_000, "a." * 50_000, "가" * 100_000, "` " * 50_000, "1. " * 40_000):
        _check_cover(text)
    split_sentences("니다 " * 40_000)
    assert time.process_time() - begin < 5


def test_cells_cover_a_stretch_without_gaps() -> None:
    text = "xx  A dog. It ran.\n\nBig city.  yy"
    cells = sentence_cells(text, 2, len(text) - 2)
    assert "".join(text[a:b] for a, b in cells) == text[2:-2]
    assert [text[a:b] for a, b in cells] == ["  A dog. ", "It ran.\n\n", "Big city.  "]
    assert sentence_cells("A dog. It ran.") == [(0, 7), (7, 14)]
    assert sentence_cells("   ", 0, 3) == [(0, 3)]
    assert sentence_cells("abc", 1, 1) == []


def test_trim_span() -> None:
    assert trim_span("a  bc  d", 1, 7) == (3, 5)
    assert trim_span("a   d", 1, 4) == (1, 1)


def _check_cover(text: str) -> None:
    spans = split_sentences(text)
    last = 0
    for start, end in spans:
        assert last <= start < end <= len(text)
        assert text[last:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        last = end
    assert text[last:].strip() == ""
