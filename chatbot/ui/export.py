"""A conversation as a Markdown file for people. Knows no page."""

from __future__ import annotations

import re

from chatbot.messages import Conversation, Turn
from chatbot.ui.i18n import Language, tr

_UNSAFE = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')


def file_name(conversation: Conversation) -> str:
    """A name that every file system takes."""
    name = " ".join(_UNSAFE.sub(" ", conversation.title).split()).strip(" .")[:80]
    return f"{name or 'chat'}.md"


def as_markdown(conversation: Conversation, language: Language) -> str:
    """All turns with their sources, word for word."""
    title = conversation.title or tr(language, "chat.untitled")
    parts = [f"# {title}", *(_turn(turn, language) for turn in conversation.turns)]
    return "\n\n".join(parts) + "\n"


def _turn(turn: Turn, language: Language) -> str:
    parts = [f"## {tr(language, 'export.you')}", turn.question]
    parts += [f"## {tr(language, 'export.model')}", turn.reply or tr(language, "export.no_reply")]
    if turn.citations:
        sources = [
            f"- [{c.label}] {c.document}"
            + (f", {tr(language, 'source.page', page=c.page)}" if c.page is not None else "")
            + "\n"
            + "\n".join(f"  > {line}" for line in c.quote.splitlines())
            for c in turn.citations
        ]
        parts += [f"**{tr(language, 'source.title')}**", "\n".join(sources)]
    return "\n\n".join(parts)
