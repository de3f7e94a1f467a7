"""How the page looks and what its own script is: files and fonts, nothing fetched."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

_HERE = Path(__file__).parent
FONTS = (
    "Pretendard", "Noto Sans KR", "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic",
    "system-ui", "sans-serif",
)  # fmt: skip
MONO_FONTS = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "D2Coding", "monospace")


def stylesheet() -> str:
    """The page's own CSS."""
    return (_HERE / "style.css").read_text(encoding="utf-8")


def head() -> str:
    """The page's own script, as part of <head>."""
    names = ("keys.js", "panel.js", "ended.js", "away.js", "held.js")
    scripts = [(_HERE / name).read_text(encoding="utf-8") for name in names]
    parts = "".join(f"<script>{script}</script>" for script in scripts)
    return f'<meta name="color-scheme" content="light dark">{parts}'


def theme() -> gr.themes.Base:
    """Fonts by name only, so that none is fetched."""
    return gr.themes.Base(font=list(FONTS), font_mono=list(MONO_FONTS), radius_size="md")
