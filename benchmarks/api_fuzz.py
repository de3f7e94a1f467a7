"""Thousands of made-up requests at the API, right and wrong ones: no answer may be a 5xx.

Schemathesis makes them from the API's own description and checks each answer against it. The
program runs over a scripted engine, without a key. The last line is JSON.

    python -m benchmarks.api_fuzz --json                2,000 cases
    python -m benchmarks.api_fuzz --cases 100 --seed 7
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.types import ASGIApp

from chatbot.api.app import Api
from chatbot.engine.scripted import ScriptedEngine
from chatbot.persons import Persons
from chatbot.services import build_services
from chatbot.settings import Settings

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
CHAT_SHARE = 0.6
"""Of all cases, how many ask for a reply: that route has most to go wrong."""


LED_ON = 0.85
REFUSED = (
    "n", "tools", "tool_choice", "functions", "function_call", "response_format", "logprobs",
    "top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty", "modalities", "audio",
    "prediction", "web_search_options",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """What came back."""

    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 for any 5xx, and for any answer that is not as described."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.api_fuzz")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    given_ = parser.parse_args(arguments)
    result = fuzz(given_.cases, given_.seed)
    if not given_.json:
        print("\n".join(f"{name:>12}  {value}" for name, value in result.items()))
    print(json.dumps(result))
    return 0 if result["ok"] else 1


def fuzz(cases: int, first_seed: int) -> dict[str, Any]:
    """Ask, and count the answers."""
    with tempfile.TemporaryDirectory(prefix="api-fuzz-") as folder:
        engine = ScriptedEngine(lambda prompt, ids: "A plain reply.", at_once=8)
        made = Settings(data_dir=Path(folder), embedding_model="none", port=0, api=True)
        with closing(build_services(made, engine=engine)) as services:
            persons = Persons(services)
            with closing(Api(persons)) as api:
                tally = _asked(api.app, cases, first_seed)
            persons.close()
    n_server = sum(count for status, count in tally.statuses.items() if status >= 500)
    return {
        "benchmark": "api_fuzz",
        "cases": sum(tally.statuses.values()),
        "statuses": {str(status): n for status, n in sorted(tally.statuses.items())},
        "server_errors": n_server,
        "not_as_described": len(tally.failures),
        "first_failures": tally.failures[:5],
        "ok": not n_server and not tally.failures,
    }


def _asked(app: ASGIApp, cases: int, first_seed: int) -> Tally:
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", app)
    schema.config.generation.update(modes=list(GenerationMode))
    results = list(schema.get_all_operations())
    operations = [result.ok() for result in results if isinstance(result, Ok)]
    assert len(operations) == len(results), "the description of the API is damaged"
    others = len(operations) - 1
    tally = Tally()
    for number, operation in enumerate(operations):
        is_chat = operation.path == "/v1/chat/completions"
        share = CHAT_SHARE if is_chat else (1 - CHAT_SHARE) / others
        for mode in GenerationMode:
            wanted = max(round(cases * share / 2), 1)
            _ask(operation, mode, (wanted, first_seed + number), tally)
    return tally


def _ask(operation: Any, mode: GenerationMode, amount: tuple[int, int], tally: Tally) -> None:
    wanted, first_seed = amount
    chance = random.Random(first_seed)

    @seed(first_seed)
    @settings(
        max_examples=wanted,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        if mode is GenerationMode.POSITIVE:
            case.body = copy.deepcopy(case.body)
            _lead_on(case.body, chance)
        answer = case.call()
        tally.statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=CHECKS)
        except FailureGroup as group:
            told = "; ".join(str(error.title) for error in group.exceptions)
            tally.failures.append(f"{operation.label} {answer.status_code} {told}")

    check()


def _lead_on(body: Any, chance: random.Random) -> None:
    """Take out of a request, in most cases, what would be refused at once, so that others see what
    it holds besides."""
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        return
    if chance.random() < LED_ON:
        body["model"] = "default"
        body["messages"].append({"role": "user", "content": "And now?"})
    if chance.random() < LED_ON:
        for name in REFUSED:
            body.pop(name, None)
    if chance.random() < LED_ON:
        for message in body["messages"]:
            _mend(message)
    if chance.random() < 0.5:
        name = chance.choice(("new", "talk", "other", "all of it"))
        body["metadata"] = {"conversation_id": name, "file_ids": chance.choice(("", "all", "x"))}


def _mend(message: Any) -> None:
    if not isinstance(message, dict):
        return
    if message.get("role") in ("tool", "function"):
        message["role"] = "user"
    message.pop("tool_calls", None)
    message.pop("function_call", None)
    if message.get("content") is None:
        message["content"] = "Some words."
    if isinstance(message["content"], list):
        for part in message["content"]:
            if isinstance(part, dict):
                part |= {"type": "text", "text": part.get("text") or "More words."}


if __name__ == "__main__":
    raise SystemExit(main())
