"""Replies without any cache, and short answers settled by several samples."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_llama import END_ID, PROMPT, LetterTokenizer, finished, reply, tiny_engine, tiny_model

from chatbot.engine.base import Finished, SamplingParams, TextDelta
from chatbot.engine.decode import Stopped
from chatbot.engine.device_memory import Memory
from chatbot.engine.kv_none import UncachedReader
from chatbot.engine.local import TransformersEngine
from chatbot.engine.local_samples import SHORT_TOKENS, draw, samples_of
from chatbot.engine.memory_watch import MARGIN_BYTES, Needs
from chatbot.engine.text_stream import TextStream
from chatbot.engine.votes import majority, normalised
from chatbot.errors import OutOfMemoryError


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> Iterator[None]:
    """When memory ends, garbage is collected, which takes long in a process of many tests."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def model() -> Any:
    return tiny_model()


def uncached(model: Any, samples: int = 1) -> TransformersEngine:
    loaded = tiny_engine(model)._loaded
    assert loaded is not None
    return TransformersEngine(replace(loaded, with_cache=False, samples=samples), LetterTokenizer())


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_equals_the_cached_run(model: Any, temperature: float) -> None:
    engine, cached = uncached(model), tiny_engine(model)
    for prompt in (PROMPT[:1], PROMPT):
        ours = reply(engine, prompt, temperature=temperature, seed=4)
        theirs = reply(cached, prompt, temperature=temperature, seed=4)
        assert (ours.token_ids, ours.finish) == (theirs.token_ids, theirs.finish)


def test_holds_nothing_and_says_so(model: Any) -> None:
    engine = uncached(model)
    for _ in range(2):
        params = SamplingParams(max_tokens=5)
        events = []
        for event in engine.generate(PROMPT, params, conversation_id="a"):
            assert engine.info.details["kv_bytes"] == 0
            events.append(event)
        assert isinstance(events[-1], Finished)
        assert events[-1].usage.cached_tokens == 0
    assert not engine.info.keeps_cache
    assert engine.info.details["kv_cache_dtype"] == "none"
    engine.forget("a")


def test_a_stopped_call_can_be_made_again(model: Any) -> None:
    reader = UncachedReader(model)
    *_, (done, _) = reader.prefill(PROMPT[:20], piece_tokens=4)
    assert done == reader.read_tokens == 20

    def stop(module: Any, arguments: Any) -> None:
        raise Stopped

    hook = model.model.layers[1].register_forward_pre_hook(stop)
    with pytest.raises(Stopped):
        reader.read((70,))
    hook.remove()
    assert reader.read_tokens == 20
    torch.testing.assert_close(
        reader.read((70,)),
        model(torch.tensor([[*PROMPT[:20], 70]])).logits[0, -1],
        atol=1e-4,
        rtol=1e-4,
    )
    assert reader.held_ids is None


def test_the_wide_part_is_computed_in_pieces(model: Any) -> None:
    widths: list[int] = []
    hook = model.model.layers[0].mlp.up_proj.register_forward_pre_hook(
        lambda module, arguments: widths.append(arguments[0].shape[1])
    )
    reader = UncachedReader(model)
    *_, (_, ours) = reader.prefill(PROMPT, piece_tokens=16)
    hook.remove()
    assert sum(widths) == len(PROMPT)
    assert max(widths) == 16
    whole = model(torch.tensor([PROMPT])).logits[0, -1]
    torch.testing.assert_close(ours, whole, atol=1e-4, rtol=1e-4)
    assert "in_pieces" not in repr(model.model.layers[0].mlp.forward)


class Script:
    """Makes the model say what it is told, by what came after the prompt."""

    def __init__(self, model: Any, answers: dict[tuple[int, ...], dict[int, float]]) -> None:
        self.rows: list[int] = []
        self._answers = answers
        model.register_forward_pre_hook(self._look, with_kwargs=True)
        model.register_forward_hook(self._say)

    def _look(self, module: Any, arguments: Any, options: Any) -> None:
        self._ids = options["input_ids"].tolist()

    def _say(self, module: Any, arguments: Any, output: Any) -> Any:
        self.rows.append(len(self._ids))
        for row, ids in enumerate(self._ids):
            output.logits[row] = -1e9
            told = tuple(ids[len(PROMPT) :])
            for token, score in self._answers.get(told, {END_ID: 0.0}).items():
                output.logits[row, -1, token] = score
        return output


def vote(engine: TransformersEngine, **params: Any) -> Finished:
    wanted = SamplingParams(**{"max_tokens": 50, **params})
    return finished(engine.generate(PROMPT, wanted, conversation_id="a"))


def test_the_majority_wins_over_the_likeliest_first_token(model: Any) -> None:
    """Token 65 is the likeliest by a little, but three others lead to the same answer, 70."""
    answers = {
        (): {65: 0.1, 66: 0.0, 67: 0.0, 68: 0.0},
        (66,): {70: 0.0},
        (67,): {70: 0.0},
        (68,): {70: 0.0},
    }

    class SameWord(LetterTokenizer):
        def decode(self, token_ids: Any) -> str:
            return "".join(
                {65: "six", 66: " ", 67: "  ", 68: "\n", 70: "Seven."}[i] for i in token_ids
            )

    loaded = tiny_engine(model)._loaded
    assert loaded is not None
    engine = TransformersEngine(replace(loaded, with_cache=False, samples=9), SameWord())
    Script(model, answers)
    made = vote(engine)
    assert made.text.strip() == "Seven."
    assert made.token_ids in ((66, 70), (67, 70), (68, 70))
    assert made.finish == "stop"
    assert made.usage.completion_tokens == 2
    notice = made.notices[0]
    assert notice.code == "samples_agreed"
    assert notice.values["samples"] == 9
    assert 5 <= notice.values["agreed"] < 9
    assert vote(engine).token_ids == made.token_ids  # greedy, so repeatable
    alone = TransformersEngine(replace(loaded, with_cache=False), SameWord())
    assert vote(alone).text == "six"


def test_what_samples_share_is_read_once(model: Any) -> None:
    script = Script(model, {(): {65: 0.0}, (65,): {66: 0.0, 67: 0.0}, (65, 66): {68: 0.0}})
    vote(uncached(model, samples=8))
    # The prompt, then one row for all, then one for each of the two ways that they part.
    assert script.rows[:3] == [1, 1, 2]
    assert max(script.rows) == 2


def test_long_answers_are_the_first_sample_alone(model: Any) -> None:
    plain = vote(uncached(tiny_model()))
    assert plain.usage.completion_tokens > SHORT_TOKENS
    events = list(
        uncached(model, samples=3).generate(
            PROMPT, SamplingParams(max_tokens=50), conversation_id="a"
        )
    )
    made = events[-1]
    assert isinstance(made, Finished)
    assert made.token_ids == plain.token_ids
    assert made.notices == ()
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == plain.text
    short = vote(uncached(model, samples=3), max_tokens=7)
    assert (short.finish, short.token_ids) == ("length", plain.token_ids[:7])


def test_no_votes_for_what_is_nobodys_chat(model: Any) -> None:
    script = Script(model, {(): {65: 0.0, 66: 0.0}})
    finished(uncached(model, samples=5).generate(PROMPT, SamplingParams(max_tokens=50)))
    assert max(script.rows) == 1


def test_stop_strings_end_a_sample(model: Any) -> None:
    params = SamplingParams(max_tokens=50, stop=(LetterTokenizer().decode((66,)),))
    Script(model, {(): {65: 0.0}, (65,): {66: 0.0}, (65, 66): {67: 0.0}})
    made = finished(uncached(model, samples=3).generate(PROMPT, params, conversation_id="a"))
    assert (made.finish, made.token_ids) == ("stop", (65,))
    assert made.notices[0].values == {"agreed": 3, "samples": 3}


def test_a_stop_while_samples_are_drawn(model: Any) -> None:
    def stop(*_: object) -> Any:
        raise Stopped

    samples = samples_of(
        SamplingParams(max_tokens=9), 3, lambda: TextStream(LetterTokenizer()), frozenset({END_ID}),
        torch.device("cpu"),
    )  # fmt: skip
    logits = torch.zeros(258)
    logits[65] = 9.0
    with pytest.raises(Stopped):
        draw(model, PROMPT, logits, samples, stop)


@pytest.mark.parametrize(
    "answers, winner, agreed",
    [
        (["a", "b", "b"], 1, 2),
        (["a", "b"], 0, 1),  # a tie goes to the first
        (["b", "a", "a", "b"], 0, 2),
        ([None, "b", None], 1, 1),
        ([" Seoul.", "Busan", '"seoul"', "BUSAN", "SEOUL!"], 0, 3),
        (["서울", "부산", "부산。"], 1, 2),
        (["3.5", "35", "3.5."], 0, 2),
    ],
)
def test_majority(answers: list[str | None], winner: int, agreed: int) -> None:
    verdict = majority(answers)
    assert (verdict.winner, verdict.agreed) == (winner, agreed)


def test_no_answer_at_all() -> None:
    with pytest.raises(ValueError, match="no answers"):
        majority([None, None])
    assert normalised("  The\n Answer ") == "the answer"


def test_the_guard_counts_the_whole_prompt(model: Any) -> None:
    """Without a cache all of it goes through each layer at once, not a piece."""
    loaded = tiny_engine(model)._loaded
    assert loaded is not None
    needs = Needs(loaded.figures, "none", 4, loaded.piece_tokens)
    free = needs.piece_bytes(loaded.piece_tokens, 0) + MARGIN_BYTES  # enough for one piece
    assert free < needs.piece_bytes(len(PROMPT), 0, cached=False) + MARGIN_BYTES
    engine = TransformersEngine(
        replace(loaded, with_cache=False), LetterTokenizer(), free=lambda: Memory(free, free)
    )
    with pytest.raises(OutOfMemoryError):
        reply(engine)


def test_several_samples_only_where_they_fit(model: Any) -> None:
    loaded = tiny_engine(model)._loaded
    assert loaded is not None
    loaded = replace(loaded, with_cache=False, samples=5)
    needs = Needs(loaded.figures, "none", 4, loaded.piece_tokens)
    read: list[int] = []
    model.register_forward_pre_hook(
        lambda _, given, options: read.append(len(options["input_ids"])), with_kwargs=True
    )
    for samples in (1, 5):
        tokens = samples * (len(PROMPT) + SHORT_TOKENS)
        free = needs.piece_bytes(0, tokens, cached=False) + MARGIN_BYTES
        engine = TransformersEngine(
            loaded,
            LetterTokenizer(),
            free=lambda n=free: Memory(n, n),  # type: ignore[misc]
        )
        params = SamplingParams(max_tokens=4, temperature=1.0, seed=1)
        finished(engine.generate(PROMPT, params, conversation_id="a"))
        assert (max(read) > 1) == (samples > 1)
