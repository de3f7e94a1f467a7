"""A run as one HTML file: no scripts, nothing from elsewhere, every value escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from chatbot.regression.compare import Comparison
from chatbot.regression.report_text import figure_text
from chatbot.regression.results import CaseResult, RunResult, SampleResult

TEMPLATE = Path(__file__).with_name("report.html.jinja")
CHART_WIDTH, CHART_HEIGHT = 640, 90


def html_report(run: RunResult, comparison: Comparison | None = None) -> str:
    """The report of a run, and of its comparison with an earlier one."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        run=run,
        comparison=comparison,
        counts=_counts(run),
        latencies=_bars(run),
        bars=token_bars,
        figure_text=figure_text,
        width=CHART_WIDTH,
        height=CHART_HEIGHT,
    )


def _counts(run: RunResult) -> list[dict[str, Any]]:
    """Shares of the statuses, for the strip at the top."""
    total = max(1, len(run.cases))
    left, parts = 0.0, []
    for status in ("passed", "flaky", "failed", "error", "skipped"):
        number = sum(case.status == status for case in run.cases)
        width = CHART_WIDTH * number / total
        parts.append({"status": status, "number": number, "x": left, "width": width})
        left += width
    return parts


def _bars(run: RunResult) -> list[dict[str, Any]]:
    """The slowest cases by their median latency."""
    cases = sorted(run.cases, key=_latency, reverse=True)[:12]
    most = max([_latency(case) for case in cases], default=0.0) or 1.0
    return [
        {"id": case.id, "latency_s": _latency(case), "width": 300 * _latency(case) / most, "y": n}
        for n, case in enumerate(case for case in cases if _latency(case) > 0)
    ]


def _latency(case: CaseResult) -> float:
    return case.metrics.latency_p50_s


def token_bars(sample: SampleResult) -> list[dict[str, Any]]:
    """Prompt tokens turn by turn, as bars of a chart; those of failing turns are marked."""
    most = max([turn.prompt_tokens for turn in sample.turns], default=0) or 1
    width = CHART_WIDTH / max(1, len(sample.turns))
    return [
        {
            "x": n * width,
            "width": max(0.5, width - 1),
            "height": (CHART_HEIGHT - 10) * turn.prompt_tokens / most,
            "failed": bool(turn.failures),
            "title": f"turn {turn.number}: {turn.prompt_tokens} tokens",
        }
        for n, turn in enumerate(sample.turns)
    ]
