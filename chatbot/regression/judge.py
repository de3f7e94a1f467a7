"""What held in a turn, in a sample and in a case. Runs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from chatbot.interchange import trace_record
from chatbot.regression.checks_limits import REFUSED
from chatbot.regression.layers import lost_in
from chatbot.regression.observation import Observation
from chatbot.regression.results import (
    CaseResult,
    Failure,
    Metrics,
    SampleResult,
    Status,
    TurnRecord,
)
from chatbot.regression.rules import Assertion
from chatbot.regression.statistics import median, wilson
from chatbot.regression.steps import Step
from chatbot.regression.suite import Case

FAILED_FINISHES = ("error", "memory")
KEPT_SAMPLES = 3
"""Conversations of failing samples that a result keeps."""


class AssertionTroubleError(Exception):
    """An assertion could not be checked; one sentence."""


def judge_turn(case: Case, step: Step, question: str, seen: Observation, number: int) -> TurnRecord:
    """The turn with all assertions that did not hold."""
    failures = tuple(
        failure
        for assertion in (*step.asserts, *case.always)
        if (failure := _failure(assertion, seen)) is not None
    )
    usage = seen.turn.usage
    return TurnRecord(
        number=number,
        line=step.line,
        question=question,
        reply=seen.turn.reply,
        finish=seen.turn.finish,
        latency_s=seen.latency_s,
        first_token_s=seen.first_token_s,
        prompt_tokens=usage.prompt_tokens if usage else 0,
        reused_tokens=usage.cached_tokens if usage else 0,
        completion_tokens=usage.completion_tokens if usage else 0,
        kv_bytes=seen.kv_bytes,
        process_bytes=seen.process_bytes,
        failures=failures,
        trace=trace_record(seen.trace) if failures and seen.answered else None,
    )


def failed_reply(step: Step, seen: Observation) -> str:
    """Why the turn failed although the suite does not expect it; "" if all is well."""
    if seen.turn.finish not in FAILED_FINISHES:
        return ""
    refused = any(notice.code == REFUSED for notice in seen.turn.notices)
    expected = "refused" if refused else "finish"
    if any(one.name == expected for one in step.asserts):
        return ""
    sentence = seen.turn.notices[-1].text if seen.turn.notices else "no reason is given"
    return f"line {step.line}: the reply failed: {sentence}"


def judge_case(
    case: Case,
    samples: Sequence[SampleResult],
    *,
    metrics: Metrics,
    duration_s: float,
    temperature: float = 0.0,
) -> CaseResult:
    """The case with the status that its samples give it."""
    passes = sum(sample.passed for sample in samples)
    low, high = wilson(passes, len(samples))
    failing = [sample for sample in samples if not sample.passed]
    return CaseResult(
        id=case.id,
        why=case.why,
        status=_status(samples, passes, case.pass_rate),
        file=case.file,
        line=case.line,
        tags=case.tags,
        samples=len(samples),
        passes=passes,
        pass_rate=case.pass_rate,
        low=low,
        high=high,
        reason=_reason(failing),
        digest=case.digest,
        sampled=temperature > 0 or any(s.reply.behaviour == "chance" for s in case.steps),
        duration_s=duration_s,
        metrics=metrics,
        failing=tuple(failing[:KEPT_SAMPLES]),
    )


def skipped_case(case: Case, reason: str) -> CaseResult:
    """A case that was not run."""
    return CaseResult(
        case.id, case.why, "skipped", case.file, case.line, case.tags, digest=case.digest,
        reason=reason,
    )  # fmt: skip


def metrics_of(turns: Sequence[TurnRecord]) -> Metrics:
    """The figures of all turns of all samples."""
    if not turns:
        return Metrics()
    prompt_tokens = sum(turn.prompt_tokens for turn in turns)
    firsts = [turn.first_token_s for turn in turns if turn.first_token_s is not None]
    return Metrics(
        turns=len(turns),
        latency_p50_s=median([turn.latency_s for turn in turns]),
        latency_max_s=max(turn.latency_s for turn in turns),
        first_token_p50_s=median(firsts),
        prompt_tokens_max=max(turn.prompt_tokens for turn in turns),
        completion_tokens=sum(turn.completion_tokens for turn in turns),
        reused_share=sum(turn.reused_tokens for turn in turns) / max(1, prompt_tokens),
        kv_bytes_max=max(turn.kv_bytes for turn in turns),
        process_bytes_max=max(turn.process_bytes for turn in turns),
    )


def _status(samples: Sequence[SampleResult], passes: int, pass_rate: float) -> Status:
    """Errors and breaches count whatever share passes: they are the program's own."""
    if any(sample.error for sample in samples):
        return "error"
    if any(sample.breached for sample in samples):
        return "failed"
    if passes == len(samples):
        return "passed"
    # A share such as 0.7 of 10 is not exact in binary.
    return "flaky" if passes + 1e-9 >= pass_rate * len(samples) and passes else "failed"


def _failure(assertion: Assertion, seen: Observation) -> Failure | None:
    if not seen.answered and assertion.name not in ("refused", "finish", "notice", "stored-turns"):
        return None if assertion.file == "built in" or assertion.negated else _unanswered(assertion)
    try:
        verdict = assertion.verdict(seen)
    except ValueError as error:
        raise AssertionTroubleError(f"{assertion.text}: {error}") from error
    if verdict.holds:
        return None
    layer, where = lost_in(assertion, seen)
    return Failure(
        assertion=assertion.text,
        invariant=assertion.is_invariant,
        found=verdict.found,
        file=assertion.file,
        line=assertion.line,
        layer=layer,
        where=where,
    )


def _unanswered(assertion: Assertion) -> Failure | None:
    if assertion.is_invariant:
        return None  # limits of a prompt that was never made
    return Failure(
        assertion.text, False, "the question was refused", assertion.file, assertion.line
    )


def _reason(failing: Sequence[SampleResult]) -> str:
    """The first thing that went wrong; errors and breaches come first."""
    for sample in sorted(failing, key=lambda s: (not s.error, not s.breached, s.number)):
        if sample.error:
            return sample.error
        for turn in sample.turns:
            for failure in sorted(turn.failures, key=lambda f: not f.invariant):
                return sentence_for(turn, failure)
    return ""


def sentence_for(turn: TurnRecord, failure: Failure) -> str:
    """One failure as a sentence."""
    layer = f" ({failure.layer}: {failure.where})" if failure.layer else ""
    return f"turn {turn.number}: {failure.assertion}: {failure.found}{layer}"
