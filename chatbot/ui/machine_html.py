"""The model and its memory as HTML: live bars, a timeline of the chat, speed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chatbot.engine.base import EngineInfo, EngineStatus
from chatbot.messages import MemoryFigures, Turn, Usage
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import Language, ladder_text, tr

MIB, GIB = 1 << 20, 1 << 30
SHOWN_CHATS = 4
TIMELINE_TURNS = 120
_WIDTH, _HEIGHT = 280, 72


@dataclass(frozen=True, slots=True)
class Machine:
    """What the panel says about the model."""

    status: EngineStatus
    info: EngineInfo | None = None
    window_tokens: int = 0
    """The window in use, which may be smaller than what the model could take."""
    figures: MemoryFigures | None = None


def machine_html(
    language: Language, machine: Machine, turns: Sequence[Turn], titles: Mapping[str, str]
) -> str:
    """The model, what memory it takes now, and how that went from turn to turn."""
    title = f"<h3>{esc(tr(language, 'panel.machine'))}</h3>"
    usages = [turn.usage for turn in turns if turn.usage]
    last = usages[-1] if usages else None
    return (
        f"{title}{_facts(language, machine, last)}"
        f'<div id="memory-live">{live_html(language, machine.figures, titles)}</div>'
        f"{_timeline(language, usages)}{_ladder(language, usages)}"
    )


def live_html(language: Language, figures: MemoryFigures | None, titles: Mapping[str, str]) -> str:
    """Bars of what is taken at this moment; only this part is asked for again and again."""
    if figures is None:
        return ""
    whole = max(
        figures.device_total_bytes, figures.process_bytes, figures.process_peak_bytes,
        figures.device_reserved_bytes, figures.weights_bytes + figures.kv_bound_bytes, 1,
    )  # fmt: skip
    rows = [("weights", figures.weights_bytes, 0), ("kv", figures.kv_bytes, figures.kv_bound_bytes)]
    rows += [
        ("activations", figures.activations_peak_bytes, 0),
        ("process", figures.process_bytes, figures.process_peak_bytes),
        ("device_memory", figures.device_allocated_bytes, figures.device_reserved_bytes),
    ]
    bars = "".join(
        _bar(language, kind, taken, limit, whole) for kind, taken, limit in rows if taken or limit
    )
    return f'<ul class="mem-bars">{bars}</ul>{_chats(language, figures, titles)}'


def size_text(n_bytes: int) -> str:
    """ "1.5 GiB" or "12 MiB"."""
    if n_bytes >= GIB:
        return f"{n_bytes / GIB:.2f} GiB"
    if n_bytes >= MIB:
        return f"{n_bytes / MIB:.1f} MiB" if n_bytes < 100 * MIB else f"{n_bytes / MIB:,.0f} MiB"
    return f"{n_bytes / 1024:.0f} KiB"


def _facts(language: Language, machine: Machine, usage: Usage | None) -> str:
    rows: list[tuple[str, str]] = []
    if machine.info:
        info = machine.info
        rows.append((tr(language, "machine.model"), info.model))
        kind = " · ".join(part for part in (info.device, info.dtype) if part)
        if info.quantization != "none":
            kind = f"{kind} · {info.quantization}"
        rows.append((tr(language, "machine.device"), kind))
        window = tr(language, "trace.tokens", count=machine.window_tokens)
        rows.append((tr(language, "machine.window"), window))
        rows += _server_rows(language, info)
        attention = info.details.get("attention")
        if isinstance(attention, str):
            rows.append((tr(language, "machine.attention"), attention))
    if usage and usage.decode_s > 0:
        speed = usage.completion_tokens / usage.decode_s
        # Tenths tell nothing of a speed of hundreds.
        rate = f"{speed:,.1f}" if speed < 100 else f"{speed:,.0f}"
        rows.append((tr(language, "machine.speed"), tr(language, "machine.per_s", rate=rate)))
        first = tr(language, "machine.seconds", time=f"{usage.prefill_s:.2f}")
        rows.append((tr(language, "machine.first"), first))
    cells = "".join(f"<dt>{esc(key)}</dt><dd>{esc(value)}</dd>" for key, value in rows)
    return f"<dl>{cells}</dl>"


def _server_rows(language: Language, info: EngineInfo) -> list[tuple[str, str]]:
    """Where the model is, if it is elsewhere, and who counts its tokens."""
    if not isinstance(server := info.details.get("server"), str):
        return []
    counted = str(info.details.get("counted_by", ""))
    if info.details.get("estimated"):
        counted = tr(language, "trace.estimated")
    return [
        (tr(language, "machine.server"), server),
        (tr(language, "machine.counted_by"), counted),
    ]


def _bar(language: Language, kind: str, taken: int, limit: int, whole: int) -> str:
    """One quantity; `limit` is its bound or its peak, drawn as a line."""
    share, mark = 100 * taken / whole, 100 * limit / whole
    line = f'<s style="left:{min(mark, 99.4):.1f}%"></s>' if limit else ""
    words = size_text(taken)
    if limit:
        key = "machine.of" if kind == "kv" else "machine.peak"
        words = tr(language, key, taken=words, limit=size_text(limit))
    name = esc(tr(language, f"machine.{kind}"))
    return (
        f'<li class="m-{kind}"><span class="name">{name}</span><span class="n">{esc(words)}</span>'
        f'<span class="mem-track"><i style="width:{min(share, 100):.1f}%"></i>{line}</span></li>'
    )


def _chats(language: Language, figures: MemoryFigures, titles: Mapping[str, str]) -> str:
    """The caches of the chats, the largest first."""
    mine = sorted(figures.kv_by_conversation.items(), key=lambda item: -item[1])
    # A conversation that is not listed belongs to nobody who may see its name.
    shown = [(titles[cid], size) for cid, size in mine if cid in titles and size][:SHOWN_CHATS]
    rows = "".join(
        f'<li><span class="name">{esc(title)}</span><span class="n">{size_text(size)}</span></li>'
        for title, size in shown
    )
    if not rows:
        return ""
    label = esc(tr(language, "machine.by_chat"))
    return f'<h4>{label}</h4><ul class="mem-chats">{rows}</ul>'


def _timeline(language: Language, usages: Sequence[Usage]) -> str:
    """Memory of the process and of the cache at the end of each turn, oldest first."""
    points = [usage.memory for usage in usages if usage.memory][-TIMELINE_TURNS:]
    if len(points) < 2:
        return ""
    top = max(max(p.process_bytes, p.device_allocated_bytes, p.kv_bytes, 1) for p in points)
    first_s = [f"{u.prefill_s:.2f}" for u in usages if u.memory][-TIMELINE_TURNS:]
    total = [max(p.process_bytes, p.device_allocated_bytes) for p in points]
    areas = (
        _area([n / top for n in total], "t-process")
        + _area([(p.weights_bytes + p.kv_bytes) / top for p in points], "t-kv")
        + _area([p.weights_bytes / top for p in points], "t-weights")
    )
    name = tr(language, "machine.timeline", count=len(points))
    first = tr(language, "machine.seconds", time=first_s[-1])
    label = esc(f"{name}: {size_text(total[0])} → {size_text(total[-1])}, {first}")
    legend = "".join(
        f'<li><b class="t-{kind}"></b>{esc(tr(language, f"machine.{kind}"))}</li>'
        for kind in ("weights", "kv", "process")
    )
    return (
        f"<h4>{esc(name)}</h4>"
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}" '
        f'preserveAspectRatio="none">{areas}</svg>'
        f'<p class="axis">{esc(size_text(top))}</p><ul class="legend">{legend}</ul>'
    )


def _area(shares: Sequence[float], kind: str) -> str:
    step = _WIDTH / (len(shares) - 1)
    line = " ".join(
        f"{step * i:.1f},{_HEIGHT * (1 - min(share, 1.0)):.1f}" for i, share in enumerate(shares)
    )
    return f'<polygon class="{kind}" points="0,{_HEIGHT} {line} {_WIDTH},{_HEIGHT}"/>'


def _ladder(language: Language, usages: Sequence[Usage]) -> str:
    """Each step that was taken because memory ran short, with its turn."""
    rows = "".join(
        f"<li>{esc(tr(language, 'memory.turn', number=number))}: "
        f"{esc(ladder_text(language, step))}</li>"
        for number, usage in enumerate(usages, start=1)
        for step in usage.ladder
    )
    if not rows:
        return ""
    return f'<h4>{esc(tr(language, "machine.ladder"))}</h4><ul class="ladder">{rows}</ul>'
