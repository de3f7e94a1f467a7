r"""Which lines of a saved chat are its frame, and how text that looks like one is told apart.

Form 2 says so in its head (`- form: 2`). A line of a message, or of what stands before the first
one, that reads like a line of the frame has a backslash put before it, one that has some already
one more, in code as well; reading takes it off again. The heading of a message gives its part,
its speaker in brackets, its time and its id: "## 3. You (Ana), 2026-01-02 `m9`". What would end an
id or a time too early, such as ` and ), stands as %XX. Exports without that line are form 1,
where nothing was marked. Knows no chat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from chatbot.messages import Role

FORM = "- form: 2"
ANSWERS = ("Assistant", "도우미")
SELF = ("You", "나")
_NOTE = (
    r"(?:No reply|답변 없음) \([a-z]+\)\.$"
    r"|\*(?:The reply ends here|답변이 여기서 끊겼습니다) \([a-z]+\)\.\*$|\*\*(?:Sources|출처)\*\*$"
    r"|## (?:How the summary came to be|요약이 만들어진 과정)$"
)
NOTE = re.compile(f"^(?:{_NOTE})")
"""What the export adds behind the messages of a turn."""
SECTION = re.compile(
    r"^## (?:(?P<system>Instructions|지시)"
    r"|Summary of turns 1 to \d+|1~\d+번째 차례의 요약|Notes|메모|Facts|사실)$"
)
"""The headings of what stands before the first message."""
_HEADING = re.compile(
    rf"^## (\d+)\. ({'|'.join((*ANSWERS, *SELF))})(?: \((.*)\))?(?:, ([^)`]*))? `([^`]*)`$"
)
_MARKED = re.compile(rf"^\\*(?:{_NOTE}|## \d+\. .*`$)")
_TOO_EARLY = re.compile(r"[`%)\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Heading:
    """The line that begins a message of form 2."""

    number: int
    role: Role
    name: str | None
    created: str | None
    id: str


def marked(text: str, *, is_head: bool = False) -> str:
    """The text with a backslash before every line that reads like one of the frame. `is_head` is
    for what stands before the first message: in a message, such a heading is not mistaken."""
    return "\n".join("\\" + s if _reads_like_frame(s, is_head) else s for s in text.split("\n"))


def unmarked(line: str, *, is_head: bool = False) -> str:
    """A line as it was before `marked`."""
    return line[1:] if line.startswith("\\") and _reads_like_frame(line, is_head) else line


def _reads_like_frame(line: str, is_head: bool) -> bool:
    return bool(_MARKED.match(line) or (is_head and SECTION.match(line.lstrip("\\"))))


def coded(word: str) -> str:
    """An id or a time as it stands in a heading."""
    return _TOO_EARLY.sub(lambda found: f"%{ord(found.group()):02X}", word)


def read_heading(line: str) -> Heading | None:
    """The message that a line of form 2 begins; None if it begins none."""
    found = _HEADING.match(line)
    if found is None:
        return None
    number, part, name, created, own_id = found.groups()
    role: Role = "assistant" if part in ANSWERS else "user"
    return Heading(int(number), role, name, created and unquote(created), unquote(own_id))


def lines_of(text: str) -> list[str]:
    """The lines of a saved chat. Only line feeds part them: other breaks belong to the messages.

    A file that another program gave a carriage return on every line loses them.
    """
    plain = text.lstrip("\ufeff")
    if plain.count("\n") == plain.count("\r\n"):
        plain = plain.replace("\r\n", "\n")
    return plain.split("\n")


def is_marked(lines: list[str]) -> bool:
    """Whether the head of a file, up to its first empty line but one, says that it is form 2."""
    for at, line in enumerate(lines):
        if at > 1 and not line:
            return False
        if line == FORM:
            return True
    return False
