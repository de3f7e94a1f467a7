"""What Prometheus is told: the tally of the process, and how things stand at this moment.

Knows no server. No label holds a text or an id.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from chatbot.engine.reach import state_now
from chatbot.services import Services
from chatbot.tally import BOUNDS_S, Durations, Tally

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_COUNTERS = {
    "turns": ("finish", "Replies that ended, by how they did."),
    "tokens": ("kind", "Tokens of prompts, of those the ones found in a cache, and of replies."),
    "folds": ("outcome", "Summaries that were tried, by what came of it."),
    "refusals": ("kind", "Questions that were refused before anything was stored."),
    "ladder_steps": ("step", "Steps taken because memory ran short."),
    "requests": ("answer", "Requests by part of the server and status."),
}
_DURATIONS = {
    "wait": "From the question to its place at the engine, in seconds.",
    "first_token": "From the question to the first text of its reply, in seconds.",
    "prefill": "Seconds in which the engine read the prompt of a reply.",
    "decode": "Seconds in which the engine wrote a reply.",
}


def metrics_text(services: Services) -> bytes:
    """All figures in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(services))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        tally = self._services.chat.queue.tally
        yield from _counters(tally)
        found = tally.durations
        for name, text in _DURATIONS.items():
            yield _histogram(name, text, found.get(name, Durations()))
        yield from self._now()

    def _now(self) -> Iterator[Metric]:
        services = self._services
        memory = services.engine.memory()
        for name, text, value in (
            ("queue_length", "Replies that are made or wait.", services.chat.queue.length),
            ("cache_bytes", "Bytes of all chats' caches.", memory.kv_bytes),
            ("cache_bound_bytes", "Most bytes that caches may take.", memory.kv_bound_bytes),
            ("weights_bytes", "Bytes of the model's weights.", memory.weights_bytes),
            ("process_bytes", "Memory of this process.", memory.process_bytes),
            ("device_bytes", "Memory allocated on the device.", memory.device_allocated_bytes),
            ("engine_ready", "1 when the model can reply.", state_now(services.engine) == "ok"),
        ):
            yield GaugeMetricFamily(f"chatbot_{name}", text, value=float(value))


def _counters(tally: Tally) -> Iterator[Metric]:
    counts = tally.counts
    for name, (label, text) in _COUNTERS.items():
        family = CounterMetricFamily(f"chatbot_{name}", text, labels=[label])
        for (of, value), count in sorted(counts.items()):
            if of == name:
                family.add_metric([value], count)
        yield family


def _histogram(name: str, text: str, durations: Durations) -> Metric:
    total, buckets = 0, []
    for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), durations.counts, strict=True):
        total += count
        buckets.append((bound, total))
    family = HistogramMetricFamily(f"chatbot_{name}_seconds", text)
    family.add_metric([], buckets, durations.sum_s)
    return family
