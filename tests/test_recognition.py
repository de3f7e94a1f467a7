"""Scanned pages: recognised where tesseract is installed, reported page by page where not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import file_maker as make
import pytest
from PIL import Image, ImageDraw, ImageFont

from retrieval.loaders import LOADERS, recognition
from retrieval.types import LoadError

needs_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="tesseract is not installed"
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    recognition.languages.cache_clear()
    yield
    recognition.languages.cache_clear()


def font_path() -> str:
    listed = subprocess.run(
        ["fc-list", ":lang=ko", "file"], capture_output=True, text=True, check=False
    ).stdout.split("\n")
    return next((one.strip().rstrip(":") for one in sorted(listed) if one.strip()), "")


def picture(text: str) -> Image.Image:
    if not font_path():
        pytest.skip("no Korean font is installed")
    made = Image.new("RGB", (1600, 500), "white")
    font = ImageFont.truetype(font_path(), 64)
    ImageDraw.Draw(made).multiline_text((60, 60), text, fill="black", font=font, spacing=40)
    return made


@needs_tesseract
@pytest.mark.slow
def test_scanned_pages_in_both_languages(tmp_path: Path) -> None:
    pages = [picture("Annual leave: 15 days\nin every year"), picture("연차 휴가는 15일입니다")]
    path = tmp_path / "scan.pdf"
    pages[0].save(path, save_all=True, append_images=pages[1:], resolution=200)
    parsed = LOADERS[".pdf"].read(path, max_pages=10)
    assert "Annual leave: 15 days" in parsed.pages[0].text
    assert "휴가" in parsed.pages[1].text and "15" in parsed.pages[1].text
    assert len(parsed.warnings) == 1 and "pages 1-2" in parsed.warnings[0]
    assert "OCR" in parsed.warnings[0]


@needs_tesseract
def test_pictures(tmp_path: Path) -> None:
    path = tmp_path / "note.png"
    picture("Room 4242").save(path)
    parsed = LOADERS[".png"].read(path, max_pages=10)
    assert "4242" in parsed.pages[0].text and "OCR" in parsed.warnings[0]
    (tmp_path / "bad.png").write_bytes(b"\x89PNG no")
    with pytest.raises(LoadError, match="picture"):
        LOADERS[".png"].read(tmp_path / "bad.png", max_pages=10)


def test_without_tesseract_the_pages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = make.write(tmp_path, "scan.pdf", make.pdf([[make.IMAGE], ["text here"], [make.IMAGE]]))
    parsed = LOADERS[".pdf"].read(path, max_pages=10)
    assert "pages 1, 3" in parsed.warnings[0] and "tesseract" in parsed.warnings[0]
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(LoadError, match="install the program tesseract"):
        LOADERS[".png"].read(tmp_path / "a.png", max_pages=10)


@needs_tesseract
def test_no_time_left_is_told_not_hung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "_left_s", lambda: 0.0)
    path = make.write(tmp_path, "scan.pdf", make.pdf([[make.IMAGE], ["text here"]]))
    parsed = LOADERS[".pdf"].read(path, max_pages=10)
    assert "parser_timeout_s" in parsed.warnings[0] and parsed.pages[1].text
