"""How wide lines look and how they start and end. Knows no file format."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]"
)
# Marks that start a line of their own wherever they stand.
BULLET = re.compile(
    r"\s*(?:[-–—•*▪▫○●◯□■◆◇◦‣∙ㆍ·※▶►➢✓☐☑☒]\s|\(?\d{1,3}\)\s|[①-⑳㉠-㉻❶-❿]|[•▪○●□■◆◇◦‣※▶►])"
)
# Numbering that also occurs inside sentences: it counts only after a line that has ended.
NUMBERED = re.compile(
    r"\s*(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4}|[가나다라마바사아자차카타파하])[.)]\s"
    r"|\d+(?:\.\d+)+\.?\s|제\s?\d+\s?(?:조|장|절|항|편|관)|[\[<]?\s?(?:표|그림|별표|별지)\s?\d"
    r"|(?:Chapter|Section|Table|Figure|Fig\.)\s\d|\[\d+\]\s)"
)
_END = re.compile(r"[.!?。！？:;][\"'”’)\]」』]*$")
_LEADERS = re.compile(r"(?:[.·…]\s?){5}")
_FIGURE = re.compile(r"(?<![^\s(\-+])\d\S*")


def columns(text: str) -> int:
    """Width in columns of a terminal: Hangul, Hanja and kana take two."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))


def ends_sentence(line: str) -> bool:
    return _END.search(line.rstrip()) is not None


def is_tabular(line: str) -> bool:
    """Rows of figures or of cells set apart; they never continue in the next line."""
    if "\t" in line or "   " in line.strip() or line.lstrip().startswith("|"):
        return True
    if ("..." in line or ". ." in line or "··" in line or "……" in line) and _LEADERS.search(line):
        return True
    n_figures = len(_FIGURE.findall(line))
    return n_figures > 1 and n_figures * 2 > line.strip().count(" ") + 1


def quantile(values: Sequence[int], share: float) -> int:
    """0 for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0
