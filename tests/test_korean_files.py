"""What is wrong with a file, in Korean: no English word stays in the sentence."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

import retrieval.loaders
from chatbot.ui.sentences import in_language
from retrieval.load import _ADVICE, check_file, load_file
from retrieval.loaders.encoding import _KINDS
from retrieval.loaders.recognition import INSTALL
from retrieval.pipeline import DEFAULT_LIMITS
from retrieval.types import LoadError

ENGLISH = re.compile(r"\b(?:an?|the|of|and|or|with|files?|document|book|in|it|is|not)\b")
SOURCES = [path.read_text("utf-8") for path in Path(retrieval.loaders.__path__[0]).glob("*.py")]


def korean(sentence: str) -> str:
    told = in_language("ko", sentence)
    assert told != sentence and not ENGLISH.search(told), told
    return told


@pytest.mark.parametrize("suffix", [".exe", "", *_ADVICE])
def test_a_format_that_is_not_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"report{suffix}"
    path.write_bytes(b"x")
    with pytest.raises(LoadError) as caught:
        check_file(path, DEFAULT_LIMITS)
    assert suffix in korean(str(caught.value))


def test_a_damaged_file_of_each_kind() -> None:
    kinds = {kind for text in SOURCES for kind in re.findall(r'kind="([^"]+)"', text)}
    assert len(kinds) >= 5
    for kind in sorted(kinds):
        korean(f"This file is damaged or not {kind}.")
    whats = {
        what for text in SOURCES for what in re.findall(r'"This file is damaged: (.+?)\."', text)
    }
    assert len(whats) >= 3
    for what in sorted(whats):
        korean(f"This file is damaged: {what}.")


def test_a_file_that_is_no_text_and_a_document_with_others_in_it() -> None:
    for _, kind in _KINDS:
        korean(f"This file is {kind}, not text; give it its right name ending.")
    for kind in ("a web page", "rows of text"):
        korean(f"This file is {kind} and no workbook; it was read as such.")
    korean(f"Reading pictures needs text recognition: {INSTALL}.")
    assert "파일 2개" in korean("Not read in this document: 2 embedded files.")
    both = korean("Not read in this document: 2 embedded files, 1 inserted documents.")
    assert "파일 2개" in both and "문서 1개" in both


def test_it_is_what_a_reader_of_a_broken_document_is_told(tmp_path: Path) -> None:
    path = tmp_path / "보고서.docx"
    path.write_bytes(b"PK no more")
    with pytest.raises(LoadError) as caught:
        load_file(path, DEFAULT_LIMITS)
    assert korean(str(caught.value)) == "파일이 손상되었거나 Word 문서 형식이 아닙니다."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.txt", "x")
    with pytest.raises(LoadError) as caught:
        load_file(path, DEFAULT_LIMITS)
    korean(str(caught.value))
