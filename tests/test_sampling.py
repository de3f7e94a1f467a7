"""The choice of one token, against the processors of the transformers library."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from chatbot.engine.base import SamplingParams
from chatbot.engine.sampling import TokenChooser

PROMPT = (3, 5, 5, 11, 40)
CPU = torch.device("cpu")


def logits(seed: int) -> torch.Tensor:
    return torch.randn(50, generator=torch.Generator().manual_seed(seed)) * 3


@pytest.mark.parametrize("penalty", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("sign", [1, -1])
def test_penalty_of_either_sign_equals_the_library(penalty: float, sign: int) -> None:
    for seed in range(20):
        raw = sign * logits(seed).abs()
        chooser = TokenChooser(SamplingParams(repetition_penalty=penalty), PROMPT, CPU)
        theirs = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([PROMPT]), raw[None])[0]
        torch.testing.assert_close(chooser._penalised(raw), theirs)


def test_tokens_of_the_reply_are_penalised_too() -> None:
    chooser = TokenChooser(SamplingParams(repetition_penalty=2.0), (1,), CPU)
    row = torch.zeros(10)
    row[7], row[4] = 3.0, 2.0
    assert [chooser.choose(row) for _ in range(3)] == [7, 4, 7]


def test_a_forbidden_token_is_never_chosen() -> None:
    row = torch.zeros(10)
    row[7], row[4] = 30.0, 20.0
    greedy, drawn = SamplingParams(), SamplingParams(temperature=1.0, seed=1)
    assert TokenChooser(greedy, (), CPU).choose(row, {7}) == 4
    assert TokenChooser(drawn, (), CPU).choose(row, {7}) == 4
    assert row[7] == 30.0  # the row itself is as it was


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9, 0.999])
def test_drawn_tokens_have_the_shares_of_the_library(top_p: float) -> None:
    raw = logits(1)
    params = SamplingParams(temperature=0.8, top_p=top_p, seed=7)
    chooser = TokenChooser(params, PROMPT, CPU)
    none = torch.tensor([PROMPT])
    theirs = TopPLogitsWarper(top_p)(none, TemperatureLogitsWarper(0.8)(none, raw[None]))[0]
    shares = torch.softmax(theirs, -1)
    drawn = torch.bincount(torch.tensor([chooser.choose(raw) for _ in range(4000)]), minlength=50)
    assert not drawn[shares == 0].any()
    torch.testing.assert_close(drawn / 4000, shares, atol=0.03, rtol=0)
