"""What went into one prompt, as HTML: the folded line, the bar, and each piece. Pure."""

from __future__ import annotations

from collections import Counter

from chatbot.messages import Dropped, PromptTrace, Segment
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import Language, reason_text, tr
from chatbot.ui.place_words import pages_text

KINDS = ("system", "summary", "turn", "recalled", "passage", "question")


def counts_line(language: Language, trace: PromptTrace) -> str:
    """ "Prompt 1,432 of 2,048 tokens, 2 passages, 3 recalled", naming only what there is."""
    count = Counter(segment.kind for segment in trace.segments)
    parts = [
        tr(language, "trace.line", tokens=trace.prompt_tokens, limit=trace.limit_tokens),
    ]
    if trace.estimated:
        parts.append(tr(language, "trace.estimated"))
    for kind in ("passage", "recalled"):
        if count[kind]:
            key = f"trace.count_{kind}" if count[kind] != 1 else f"trace.one_{kind}"
            parts.append(tr(language, key, count=count[kind]))
    if trace.reused_tokens and trace.prompt_tokens:
        share = round(100 * trace.reused_tokens / trace.prompt_tokens)
        parts.append(tr(language, "trace.reused", share=share))
    if trace.dropped:
        parts.append(tr(language, "trace.count_dropped", count=len(trace.dropped)))
    return ", ".join(parts)


def trace_html(language: Language, trace: PromptTrace) -> str:
    """The whole prompt: the bar, the exact text of each piece, and what was left out and why."""
    pieces = "".join(_piece(language, segment) for segment in trace.segments)
    left_out = "".join(_dropped(language, entry) for entry in trace.dropped)
    if left_out:
        title = esc(tr(language, "trace.left_out"))
        left_out = f'<h5>{title}</h5><div class="pieces left-out">{left_out}</div>'
    query = ""
    if trace.query and trace.query != trace.question:
        query = f'<p class="query">{esc(tr(language, "trace.query", query=trace.query))}</p>'
    sums = tr(
        language,
        "trace.sums",
        tokens=trace.prompt_tokens,
        limit=trace.limit_tokens,
        reply=trace.reply_tokens,
    )
    if trace.estimated:
        sums = f"{sums} ({tr(language, 'trace.estimated')})"
    sums = esc(sums)
    return (
        f'{bar_html(language, trace)}<p class="sums">{sums}</p>{query}'
        f'<div class="pieces">{pieces}</div>{left_out}'
    )


def bar_html(language: Language, trace: PromptTrace) -> str:
    """Shares of the limit by kind, in the order of the prompt, with a legend that names them."""
    sums: Counter[str] = Counter()
    for segment in trace.segments:
        sums[segment.kind] += segment.tokens
    whole = max(trace.limit_tokens, trace.prompt_tokens, 1)
    parts = "".join(
        f'<i class="k-{kind}" style="width:{100 * sums[kind] / whole:.2f}%"></i>'
        for kind in KINDS
        if sums[kind]
    )
    legend = "".join(
        f'<li><b class="k-{kind}"></b>{esc(tr(language, f"kind.{kind}"))} '
        f'<span class="n">{sums[kind]:,}</span></li>'
        for kind in KINDS
        if sums[kind]
    )
    free = whole - trace.prompt_tokens
    if free > 0:
        legend += (
            f'<li><b class="k-free"></b>{esc(tr(language, "kind.free"))} '
            f'<span class="n">{free:,}</span></li>'
        )
    label = esc(tr(language, "trace.line", tokens=trace.prompt_tokens, limit=trace.limit_tokens))
    return (
        f'<div class="bar" role="img" aria-label="{label}">{parts}</div>'
        f'<ul class="legend">{legend}</ul>'
    )


def _piece(language: Language, segment: Segment) -> str:
    return (
        f'<details class="piece" data-kind="{segment.kind}"><summary>'
        f'<b class="k-{segment.kind}"></b>{_name(language, segment)}'
        f'<span class="n">{esc(tr(language, "trace.tokens", count=segment.tokens))}</span>'
        f'</summary><pre class="verbatim">{esc(segment.text)}</pre></details>'
    )


def _dropped(language: Language, entry: Dropped) -> str:
    segment = entry.segment
    reason = f'<span class="reason">{esc(reason_text(language, entry.reason))}</span>'
    kind = f'<b class="k-{segment.kind}"></b>'
    if not segment.text:
        # Stands for several pieces, which the reason counts.
        name = f'<span class="kind">{esc(tr(language, f"kind.{segment.kind}"))}</span>'
        return f'<p class="piece many" data-kind="{segment.kind}">{kind}{name}{reason}</p>'
    return (
        f'<details class="piece" data-kind="{segment.kind}"><summary>'
        f"{kind}{_name(language, segment)}{reason}"
        f'<span class="n">{esc(tr(language, "trace.tokens", count=segment.tokens))}</span>'
        f'</summary><pre class="verbatim">{esc(segment.text)}</pre></details>'
    )


def _name(language: Language, segment: Segment) -> str:
    kind = esc(tr(language, f"kind.{segment.kind}"))
    label = f'<span class="label">{esc(segment.label)}</span>' if segment.label else ""
    where = ""
    if segment.document:
        pages = ""
        if segment.page is not None:
            pages = " · " + pages_text(language, segment.document, segment.page, segment.page_end)
        where = f'<span class="document">{esc(segment.document + pages)}</span>'
    else:
        # The first words tell one turn from another before it is opened.
        start = " ".join(segment.text.split())[:200]
        where = f'<span class="start">{esc(start)}</span>'
    return f'<span class="kind">{kind}</span>{label}{where}'
