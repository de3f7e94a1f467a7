"""The arithmetic of how much a team needs, and the page that a command makes of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from cli import inside

from chatbot.engine.capacity import GIB, Capacity, Hardware, Load, cheapest, groups_for
from chatbot.engine.known_models import KNOWN_CONFIGS
from chatbot.engine.model_figures import figures_of
from chatbot.errors import InputError

SMALL = "meta-llama/Llama-3.1-8B-Instruct"
LARGE = "meta-llama/Llama-3.3-70B-Instruct"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "capacity.md"


def needs(users: int, model: str = SMALL, load: Load | None = None, **more: float) -> Capacity:
    hardware = dataclasses.replace(Hardware(), **more)  # type: ignore[arg-type]
    load = load or Load()
    figures = figures_of(KNOWN_CONFIGS[model])
    groups = groups_for(figures, hardware, load, weights="none", cache="16bit")
    return cheapest(users, groups, hardware, load)


def test_the_figures_follow_from_the_model() -> None:
    found = needs(1000)
    assert found.group.kv_bytes_per_token == 2 * 32 * 8 * 128 * 2
    assert found.group.weights_bytes == pytest.approx(2 * 8.03e9, rel=0.01)
    assert found.turns_s == pytest.approx(1000 * 0.1 * 12 / 3600)
    assert found.prefill_tokens_s == pytest.approx(found.turns_s * 3000 * 0.4)
    assert found.decode_tokens_s == pytest.approx(found.turns_s * 300)


def test_caches_of_a_batch_fit_and_each_reply_is_fast_enough() -> None:
    for model in (SMALL, LARGE):
        group = needs(100_000, model).group
        used = group.batch * 3300 * group.kv_bytes_per_token
        assert used <= group.kv_bytes
        assert group.weights_bytes + group.kv_bytes <= group.gpus * 72 * GIB
        assert group.decode_tokens_s / group.batch >= 15


def test_more_users_longer_replies_and_a_larger_model_need_more() -> None:
    sizes = [needs(users).gpus for users in (10, 1000, 100_000, 1_000_000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 5 * sizes[-2]
    assert needs(100_000, load=Load(reply_tokens=900)).gpus > needs(100_000).gpus
    assert needs(100_000, load=Load(cached_share=0.0)).gpus > needs(100_000).gpus
    assert needs(100_000, LARGE).gpus > needs(100_000).gpus
    assert needs(10, LARGE).group.gpus > 1
    assert needs(10, spare_groups=0).gpus == 1


def test_a_model_that_no_group_holds_is_refused() -> None:
    with pytest.raises(InputError, match="smaller model"):
        needs(10, LARGE, memory_bytes=4 * GIB)


def test_the_command_says_what_was_assumed_and_takes_other_assumptions() -> None:
    arguments = ("capacity", "--model", SMALL, "--users", "50", "--json")
    plain = json.loads(inside(*arguments).out)
    assert plain["assumed"]["reply_tokens"] == 300
    more = ("--assume", "reply_tokens=600", "memory_bytes=141GiB")
    other = json.loads(inside(*arguments, *more).out)
    assert other["assumed"]["memory_bytes"] == 141 * GIB
    before, after = plain["models"][0]["needs"][0], other["models"][0]["needs"][0]
    assert after["decode_tokens_s"] == pytest.approx(2 * before["decode_tokens_s"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--assume", "speed=3"), "speed"),
        (("--assume", "reply_tokens=many"), "number"),
        (("--assume", "cached_share=1.5"), "share"),
        (("--assume", "flops=0"), "above 0"),
        (("--assume", "turns_per_hour=1e308"), "up to 1e+18"),
        (("--assume", "busy_at_most=1e-300"), "up to"),
        (("--assume", "spare_groups=0.5"), "whole number"),
        (("--assume", "__class__=1"), "not '__class__'"),
        (("--users", "1" + "0" * 400), "from 1 to"),
        (("--users", "0"), "--users"),
    ],
)
def test_impossible_assumptions_are_sentences(arguments: tuple[str, ...], said: str) -> None:
    done = inside("capacity", "--model", SMALL, *arguments)
    assert done.code == 2
    assert said in done.err


def test_the_page_in_docs_is_what_the_command_writes(tmp_path: Path) -> None:
    command = next(line for line in PAGE.read_text().splitlines() if line.startswith("    python"))
    words = command.split()[3:]
    assert words[-2:] == ["--write", "docs/capacity.md"]
    written = tmp_path / "capacity.md"
    assert inside(*words[:-1], str(written)).code == 0
    assert written.read_text().replace(str(written), "docs/capacity.md") == PAGE.read_text()
