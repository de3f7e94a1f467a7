"""Two runs side by side: what is new, fixed, regressed, the same, and what differs around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chatbot.regression.results import CaseResult, Fingerprint, RunResult
from chatbot.regression.statistics import fisher_worse, median

Change = Literal["new", "removed", "not run", "fixed", "regressed", "worse", "same"]
FALSE_ALARMS = 0.05
"""Most chance that a comparison of two runs of the same thing calls any sampled case regressed.

It is shared among the sampled cases (Bonferroni). A case that fell, but not beyond this, is called
worse: it fails the run all the same, and the name says that more samples are needed to tell.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One case in both runs. `p`: chance of such a fall if nothing had changed."""

    id: str
    change: Change
    before: str = ""
    after: str = ""
    p: float | None = None
    edited: bool = False
    """The case itself, its settings or documents are not what they were."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something of the fingerprints that is not the same."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure over the cases that both runs have."""

    name: str
    unit: str
    before: float
    after: float

    @property
    def ratio(self) -> float | None:
        return self.after / self.before if self.before else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs between an earlier and a later run."""

    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    figures: tuple[FigureChange, ...]

    def of(self, change: Change) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.change == change)

    @property
    def regressed(self) -> bool:
        return bool(self.of("regressed"))


def compare(before: RunResult, after: RunResult) -> Comparison:
    """What changed from `before` to `after`. Texts are never compared."""
    old = {case.id: case for case in before.cases if case.status != "skipped"}
    new = {case.id: case for case in after.cases}
    n_sampled = sum(case.sampled and case.id in old for case in after.cases)
    chance = FALSE_ALARMS / max(1, n_sampled)
    rows = [_row(old.get(case.id), case, chance) for case in after.cases]
    for case in before.cases:
        if case.id not in new:
            change: Change = "not run" if case.id in after.left_out else "removed"
            rows.append(Row(case.id, change, case.status))
    both = [(old[i], new[i]) for i in old if i in new and new[i].status != "skipped"]
    return Comparison(
        tuple(rows),
        tuple(_differences(before.fingerprint, after.fingerprint)),
        tuple(_figures(both)),
    )


def _row(old: CaseResult | None, new: CaseResult, chance: float) -> Row:
    if new.status == "skipped":
        return Row(new.id, "not run", old.status if old else "", new.status, reason=new.reason)
    if old is None:
        return Row(new.id, "new", "", new.status, reason=new.reason)
    p = fisher_worse((old.passes, old.samples), (new.passes, new.samples))
    change: Change = "same"
    if old.good and not new.good:
        by_chance = (old.sampled or new.sampled) and new.status != "error" and p > chance
        change = "worse" if by_chance else "regressed"
    elif new.good and not old.good:
        change = "fixed"
    return Row(
        id=new.id,
        change=change,
        before=_shown(old),
        after=_shown(new),
        p=p if max(old.samples, new.samples) > 1 else None,
        edited=old.digest != new.digest,
        reason=new.reason,
    )


def _shown(case: CaseResult) -> str:
    return case.status if case.samples <= 1 else f"{case.status} {case.passes}/{case.samples}"


def _differences(before: Fingerprint, after: Fingerprint) -> Iterator[Difference]:
    for name in (
        "model", "revision", "quantization", "kv_cache", "device", "prompts", "embedder", "suite",
    ):  # fmt: skip
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield Difference(name, one, other)
    yield from _mapping_differences("setting", before.settings, after.settings)
    yield from _mapping_differences("version of", before.versions, after.versions)


def _mapping_differences(
    what: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Difference]:
    for key in sorted(before.keys() | after.keys()):
        # The model and its kind are told by the fingerprint's own lines.
        if before.get(key) != after.get(key) and (what, key) != ("setting", "model"):
            one, other = (_text(of.get(key, "not there")) for of in (before, after))
            yield Difference(f"{what} {key}", one, other)


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _figures(both: list[tuple[CaseResult, CaseResult]]) -> Iterator[FigureChange]:
    if not both:
        return
    old, new = [one.metrics for one, _ in both], [other.metrics for _, other in both]
    for name, unit, key in (
        ("latency, median", "s", "latency_p50_s"),
        ("first token, median", "s", "first_token_p50_s"),
    ):
        before = median([getattr(m, key) for m in old])
        yield FigureChange(name, unit, before, median([getattr(m, key) for m in new]))
    for name, unit, key in (
        ("prompt, longest", "tokens", "prompt_tokens_max"),
        ("cache, most", "bytes", "kv_bytes_max"),
        ("memory of the process, most", "bytes", "process_bytes_max"),
    ):
        most = max(getattr(m, key) for m in old)
        yield FigureChange(name, unit, most, max(getattr(m, key) for m in new))
    total = sum(m.completion_tokens for m in old)
    yield FigureChange("replies, all", "tokens", total, sum(m.completion_tokens for m in new))
