"""HTML of the two lists: chats and documents. Pure; text from outside is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from chatbot.messages import PromptTrace
from chatbot.store_queries import ConversationInfo
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.fragments import unused_html
from chatbot.ui.i18n import Language, tr
from chatbot.ui.icons import icon
from chatbot.ui.ingest_jobs import JobRow
from chatbot.ui.place_words import page_count_text
from chatbot.ui.sentences import in_language
from retrieval.types import DocumentInfo


class Listed(Protocol):
    """What the list needs to know of a conversation."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def pinned(self) -> bool: ...


def worth_listing(
    known: Sequence[ConversationInfo], kept: Collection[str]
) -> list[ConversationInfo]:
    """Chats with a turn or a name, and those whose ids are `kept`: empty ones would pile up."""
    return [item for item in known if item.turns or item.title or item.id in kept]


def conversations_html(
    language: Language,
    listed: Sequence[Listed],
    current: str,
    running: Collection[str],
    *,
    searched: bool = False,
) -> str:
    """The list of chats as given, each with pin, rename and delete."""
    if not listed:
        key = "side.none_found" if searched else "side.no_chats"
        return f'<p class="none">{esc(tr(language, key))}</p>'
    rows = "".join(_conversation(language, c, c.id == current, c.id in running) for c in listed)
    return f'<ul class="items">{rows}</ul>'


def _conversation(language: Language, listed: Listed, is_current: bool, is_running: bool) -> str:
    title = esc(listed.title or tr(language, "chat.untitled"))
    cid = esc(listed.id)
    dot = f'<i class="running" title="{esc(tr(language, "side.running"))}"></i>'
    here = ' aria-current="page"' if is_current else ""
    return (
        f'<li class="item{" current" if is_current else ""}{" pinned" if listed.pinned else ""}" '
        f'data-id="{cid}">'
        f'<button type="button" class="t" data-act="open" data-id="{cid}" title="{title}"'
        f"{here}>{dot if is_running else ''}"
        f"<span>{title}</span></button>"
        f"{_tool(language, 'unpin' if listed.pinned else 'pin', 'pin', cid, title)}"
        f"{_tool(language, 'rename', 'edit', cid, title)}"
        f"{_tool(language, 'delete', 'bin', cid, title)}</li>"
    )


def documents_html(
    language: Language,
    documents: Sequence[DocumentInfo],
    used: Collection[str],
    jobs: Sequence[JobRow],
    trace: PromptTrace | None = None,
) -> str:
    """Files being read, then the documents, each with a switch for this chat and remove.

    `trace` is of the newest prompt: it tells what of each document was in it.
    """
    rows = "".join(_job(language, job) for job in jobs)
    shares = shares_of(trace)
    rows += "".join(_document(language, d, d.id in used, shares) for d in documents)
    if not rows:
        return f'<p class="none">{esc(tr(language, "side.no_documents"))}</p>'
    is_unused = bool(documents) and not any(d.id in used for d in documents)
    hint = unused_html(language, len(documents)) if is_unused and not jobs else ""
    return f'{hint}<ul class="items">{rows}</ul>'


def shares_of(trace: PromptTrace | None) -> dict[str, int | None]:
    """For each document in a prompt, how many passages of it; None for the whole of it."""
    if trace is None:
        return {}
    count = Counter(s.document_id for s in trace.segments if s.kind == "passage" and s.document_id)
    is_whole = any(notice.code == "documents_whole" for notice in trace.notices)
    return {name: None if is_whole else number for name, number in count.items()}


def _share(language: Language, share: int | None) -> str:
    if share is None:
        return tr(language, "document.whole")
    return tr(language, "trace.count_passage" if share != 1 else "trace.one_passage", count=share)


def _document(
    language: Language, document: DocumentInfo, is_used: bool, shares: Mapping[str, int | None]
) -> str:
    name, did = esc(document.name), esc(document.id)
    count = document.pages
    facts = [page_count_text(language, document.name, count)] if count > 1 else []
    facts.append(tr(language, "document.tokens", count=document.tokens))
    if is_used and document.id in shares:
        facts.append(_share(language, shares[document.id]))
    if document.removed_lines:
        facts.append(tr(language, "document.removed_lines", count=document.removed_lines))
    warnings = "".join(
        f'<p class="warn">{esc(in_language(language, text))}</p>' for text in document.warnings
    )
    use = esc(tr(language, "document.use", name=document.name))
    return (
        f'<li class="item document" data-id="{did}"><label title="{use}"><input type="checkbox" '
        f'data-act="use" data-id="{did}" aria-label="{use}"{" checked" if is_used else ""}>'
        f'<span class="name" title="{name}">{name}</span>'
        f'<span class="facts">{esc(" · ".join(facts))}</span></label>'
        f"{_tool(language, 'remove', 'bin', did, name)}{warnings}</li>"
    )


def _job(language: Language, job: JobRow) -> str:
    name = esc(job.name)
    if job.is_over:
        label = esc(tr(language, "document.dismiss_named", name=job.name))
        close = (
            f'<button type="button" class="tool" data-act="dismiss" data-id="{esc(job.id)}" '
            f'aria-label="{label}">{icon("close")}</button>'
        )
        return (
            f'<li class="item job {job.state}">'
            f'<span class="name" title="{name}">{name}</span>{close}'
            f'<p class="warn" role="alert">{esc(in_language(language, job.message))}</p></li>'
        )
    share = f' style="width:{100 * job.fraction:.0f}%"' if job.fraction is not None else ""
    kind = "" if job.fraction is not None else " endless"
    return (
        f'<li class="item job"><span class="name" title="{name}">{name}</span>'
        f'<span class="facts">{esc(tr(language, f"job.{job.state}"))}</span>'
        f'<span class="progress{kind}"><i{share}></i></span></li>'
    )


def _tool(language: Language, act: str, picture: str, target: str, name: str) -> str:
    label = esc(tr(language, f"side.{act}"))
    return (
        f'<button type="button" class="tool" data-act="{act}" data-id="{target}" '
        f'data-name="{name}" title="{label}" aria-label="{label}: {name}">{icon(picture)}</button>'
    )
