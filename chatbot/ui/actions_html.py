"""The row of buttons under a reply, and the folded line about its prompt, as HTML. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from chatbot.messages import PromptTrace, Turn, Version
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import Language, tr
from chatbot.ui.icons import icon
from chatbot.ui.prompt_html import counts_line


def actions_html(
    turn: Turn,
    language: Language,
    trace: PromptTrace | None,
    *,
    is_last: bool,
    versions: Sequence[Version],
) -> str:
    """Arrows between versions, what can be done with a turn, and the line about its prompt."""
    buttons = [_versions_html(language, turn, versions)]
    if turn.reply:
        buttons.append(_button("copy", tr(language, "chat.copy")))
    if turn.finish != "running":
        if is_last:
            buttons.append(_button("retry", tr(language, "chat.retry")))
        if turn.user:
            buttons.append(_button("edit", tr(language, "chat.edit")))
        buttons.append(_button("forget", tr(language, "chat.forget")))
    line = ""
    if trace:
        line = (
            '<details class="trace"><summary>'
            f"<span>{esc(counts_line(language, trace))}</span></summary>"
            f'<div class="trace-body">{esc(tr(language, "trace.loading"))}</div></details>'
        )
    return f'<div class="actions">{"".join(buttons)}{line}</div>'


def _versions_html(language: Language, turn: Turn, versions: Sequence[Version]) -> str:
    """Arrows to what once stood in the place of a turn; empty where nothing did."""
    ids = [version.id for version in versions]
    if len(ids) < 2 or turn.id not in ids:
        return ""
    here = ids.index(turn.id)
    words = esc(tr(language, "chat.version", number=here + 1, count=len(ids)))

    def arrow(way: str, at: int) -> str:
        label = esc(tr(language, f"chat.version_{way}"))
        target = f'data-id="{esc(ids[at])}"' if 0 <= at < len(ids) else "disabled"
        return (
            f'<button type="button" class="act" data-act="version" {target} title="{label}" '
            f'aria-label="{label}">{icon(way)}</button>'
        )

    return (
        f'<span class="versions" role="group" aria-label="{words}">{arrow("left", here - 1)}'
        f'<span class="n">{here + 1}/{len(ids)}</span>{arrow("right", here + 1)}</span>'
    )


def _button(act: str, text: str) -> str:
    return (
        f'<button type="button" class="act" data-act="{act}" title="{esc(text)}" '
        f'aria-label="{esc(text)}">{icon(act)}</button>'
    )


def bar_button(language: Language, act: str, picture: str, key: str, elem_id: str = "") -> str:
    """A button that is a picture, with its name for those who do not see it."""
    label = esc(tr(language, key))
    named = f' id="{elem_id}"' if elem_id else ""
    return (
        f'<button type="button" class="act" data-act="{act}"{named} title="{label}" '
        f'aria-label="{label}">{icon(picture)}</button>'
    )
