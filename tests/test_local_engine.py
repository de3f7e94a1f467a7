"""The real engine around a tiny random model: equal to the library, stoppable, never stuck."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tiny_llama import END_ID, PROMPT, reply, tiny_engine, tiny_model
from transformers.generation.logits_process import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
)

from chatbot.engine.base import Finished, Prefilled, SamplingParams, TextDelta
from chatbot.engine.decode import Reader
from chatbot.engine.kv_cache import new_cache
from chatbot.engine.local import TransformersEngine


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Waiting for a second thread takes longer than the work of so small a model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


@pytest.fixture
def engine(model: Any) -> TransformersEngine:
    return tiny_engine(model)


def library_reply(
    model: Any, prompt: tuple[int, ...], max_tokens: int, **options: Any
) -> list[int]:
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=max_tokens, do_sample=False,
        **options,
    )  # fmt: skip
    new: list[int] = out[0, len(prompt) :].tolist()
    return new[: new.index(END_ID)] if END_ID in new else new


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_equals_the_library(dtype: str, penalty: float) -> None:
    for seed in range(3):
        model = tiny_model(seed=seed, dtype=dtype)
        engine = tiny_engine(model, piece_tokens=512)
        ours = reply(engine, repetition_penalty=penalty).token_ids
        # The reply's own tokens are penalised, those of the prompt are not.
        processor = RepetitionPenaltyLogitsProcessor(penalty, prompt_ignore_length=len(PROMPT))
        theirs = library_reply(model, PROMPT, 40, logits_processor=LogitsProcessorList([processor]))
        assert list(ours) == theirs


def test_pieces_give_the_same_logits_as_one_pass(model: Any) -> None:
    whole = model(torch.tensor([PROMPT])).logits[0, -1]
    for piece_tokens in (1, 7, 16, len(PROMPT) - 1, len(PROMPT), 512):
        reader = Reader(model, new_cache(model), ())
        *_, (done, logits) = reader.prefill(PROMPT, piece_tokens=piece_tokens)
        assert done == len(PROMPT)
        torch.testing.assert_close(logits, whole, atol=1e-2, rtol=0)
        assert reader.cache.get_seq_length() == len(PROMPT) == reader.read_tokens


def test_progress_of_prefill_is_told(engine: TransformersEngine) -> None:
    events = list(engine.generate(PROMPT, SamplingParams(max_tokens=1)))
    assert [e.done_tokens for e in events if isinstance(e, Prefilled)] == [16, 32, 48, 64, 71]


def test_text_events_join_to_the_text(engine: TransformersEngine) -> None:
    events = list(engine.generate(PROMPT, SamplingParams(max_tokens=40)))
    last = events[-1]
    assert isinstance(last, Finished)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == last.text != ""
    assert last.usage.prompt_tokens == len(PROMPT)
    assert last.usage.completion_tokens == 40 == len(last.token_ids)
    assert last.usage.prefill_s > 0 < last.usage.decode_s


def test_end_token_ends_and_is_not_in_the_reply(model: Any) -> None:
    first = reply(tiny_engine(model)).token_ids
    engine = tiny_engine(model)
    engine._stop_ids = frozenset({first[5]})
    stopped = reply(engine)
    assert stopped.finish == "stop"
    assert stopped.token_ids == first[: first.index(first[5])]


@pytest.mark.parametrize("model_ends", [(7,), (END_ID, 7)])
def test_every_end_token_of_the_model_counts(model: Any, model_ends: tuple[int, ...]) -> None:
    engine = tiny_engine(model)
    loaded = engine._loaded
    assert loaded is not None
    from dataclasses import replace

    again = TransformersEngine(replace(loaded, end_ids=model_ends), engine.tokenizer)
    assert again._stop_ids >= {7, END_ID}


def test_stop_string_is_cut_off(engine: TransformersEngine) -> None:
    text = reply(engine).text
    stop = text[9:11]
    stopped = reply(engine, stop=("never", stop))
    assert stopped.finish == "stop"
    assert stopped.text == text[: text.index(stop)]


def test_sampling_is_repeatable_by_seed_and_private(engine: TransformersEngine) -> None:
    hot = {"temperature": 1.5, "top_p": 0.95}
    first = reply(engine, seed=3, **hot).token_ids
    torch.manual_seed(99)
    before = torch.random.get_rng_state()
    assert reply(engine, seed=3, **hot).token_ids == first
    assert torch.equal(torch.random.get_rng_state(), before)
    assert reply(engine, seed=4, **hot).token_ids != first
    assert reply(engine, **hot).token_ids != reply(engine, **hot).token_ids


def test_no_share_left_or_no_temperature_is_greedy(engine: TransformersEngine) -> None:
    greedy = reply(engine).token_ids
    assert reply(engine, temperature=2.0, top_p=0.0).token_ids == greedy
    assert reply(engine, temperature=0, seed=5).token_ids == greedy
    assert reply(engine, temperature=1, top_p=1e-9, seed=5).token_ids == greedy
