"""Folding inside a real chat: what the model sees before, after and without a good summary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chatbot.chat import Chat, TurnDone
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.errors import EngineError, InputError
from chatbot.messages import RollingSummary
from chatbot.settings import Settings
from chatbot.store import Store
from tests.fold_rig import WINDOW_TOKENS, Answer, Rig


@pytest.fixture
def make(tmp_path: Path) -> object:
    rigs: list[Rig] = []

    def build(summarise: Answer, **options: object) -> Rig:
        rigs.append(Rig(tmp_path, summarise, **options))
        return rigs[-1]

    yield build
    for rig in rigs:
        rig.close()


def good(prompt: str) -> str:
    return "The user assigns numbered chairs to rooms, and the assistant takes note of it."


Make = Callable[..., Rig]


def test_old_turns_are_folded_and_the_summary_is_in_the_prompt(make: Make) -> None:
    rig = make(good)
    turns = rig.talk(24)
    conversation = rig.store.load(rig.id)
    assert conversation.summary is not None
    assert 0 < conversation.summary.covers <= 22
    assert [t.id for t in conversation.turns] == [t.id for t in turns]
    assert conversation.summary.text.split(".")[0] in rig.chat_prompts[-1]
    for turn in turns:
        trace = rig.store.load_trace(turn.id)
        assert trace is not None
        assert trace.prompt_tokens + trace.reply_tokens <= WINDOW_TOKENS


def test_the_newest_turns_are_never_in_a_fold(make: Make) -> None:
    rig = make(good)
    for n in range(20):
        before = len(rig.summary_prompts)
        rig.talk(1, start=n)
        for prompt in rig.summary_prompts[before:]:
            assert f"Item {n}:" not in prompt and f"Item {n - 1}:" not in prompt


@pytest.mark.parametrize(
    "bad",
    [
        lambda prompt: "",
        lambda prompt: "   \n ",
        lambda prompt: "I'm sorry, please provide the conversation you want summarised.",
        lambda prompt: "Sure! Here is what you should do with chair 999.",
        lambda prompt: "The user met Bartholomew in 1874 at 99 Main Street.",
        lambda prompt: EngineError("It broke."),
        lambda prompt: ScriptedReply("The user said that ", ends_itself=False),
    ],
    ids=["empty", "blank", "apology", "answer", "invention", "failure", "endless"],
)
def test_a_bad_summary_is_replaced_by_sentences_of_the_turns(make: Make, bad: Answer) -> None:
    rig = make(bad)
    rig.talk(16)
    summary = rig.store.load(rig.id).summary
    assert summary is not None
    assert summary.origin == "extractive"
    assert len(rig.engine.tokenizer.encode(summary.text)) <= 80
    assert "chair number" in summary.text or any("chair number" in f.text for f in summary.facts)
    assert "Bartholomew" not in rig.chat_prompts[-1]
    assert len(rig.store.load(rig.id).turns) == 16


def test_refusals_back_off(make: Make) -> None:
    rig = make(lambda prompt: "")
    rig.talk(60)
    folds = len(rig.store.summary_versions(rig.id))
    assert folds >= 8
    assert len(rig.summary_prompts) <= 2 * folds / 3


def test_summary_off_folds_nothing(make: Make) -> None:
    rig = make(good, summary="off")
    rig.talk(16)
    assert rig.store.load(rig.id).summary is None
    assert rig.summary_prompts == []


def test_how_turns_are_folded_can_be_changed_while_the_program_runs(make: Make) -> None:
    rig = make(good, summary="off")
    rig.talk(10)
    used = rig.chat.settings
    rig.chat.change_settings(
        used.model_copy(update={"summary": "extractive", "summary_tokens": 64})
    )
    rig.talk(1)
    summary = rig.store.load(rig.id).summary
    assert summary is not None and summary.tokens <= 64 and rig.summary_prompts == []
    with pytest.raises(InputError, match="may have 64"):
        rig.chat.edit_summary(rig.id, "A chair. " * 60)


def test_extractive_asks_no_model(make: Make) -> None:
    rig = make(good, summary="extractive")
    rig.talk(16)
    assert rig.summary_prompts == []
    summary = rig.store.load(rig.id).summary
    assert summary is not None and summary.origin == "extractive"


def test_an_edit_before_the_fold_line_rolls_the_summary_back(make: Make) -> None:
    rig = make(good)
    turns = rig.talk(20)
    assert rig.store.load(rig.id).summary is not None
    *_, last = rig.chat.edit(rig.id, turns[2].id, "Item edited.")
    assert isinstance(last, TurnDone)
    prompt = rig.chat_prompts[-1]
    assert "Item 0:" in prompt and "Item 1:" in prompt and "Item edited." in prompt
    assert not any(f"Item {n}:" in prompt for n in range(2, 20))
    conversation = rig.store.load(rig.id)
    assert conversation.summary is None or conversation.summary.covers <= 2


def test_what_was_folded_is_found_again(make: Make) -> None:
    rig = make(good, summary_tokens=16)
    rig.ask("By the way, the safe in the cellar opens with 48213.")
    rig.talk(24)
    rig.ask("Which number opens the safe in the cellar?")
    assert "opens with 48213" in rig.chat_prompts[-1]


def test_the_front_of_the_prompt_is_the_same_between_folds(make: Make) -> None:
    rig = make(good)
    turns = rig.talk(30)
    changes = 0
    previous = ""
    for turn in turns:
        trace = rig.store.load_trace(turn.id)
        assert trace is not None
        front = "".join(s.text for s in trace.segments if s.kind in ("system", "summary"))
        changes += front != previous
        previous = front
    assert changes <= len(rig.store.summary_versions(rig.id)) + 1


def test_the_front_of_the_next_prompt_is_read_ahead(tmp_path: Path) -> None:
    """After a fold, too: then nothing behind the system text would be in the cache."""
    engine = ScriptedEngine(
        lambda prompt, ids: "That is noted, and nothing else changes.", keeps_cache=True
    )
    store = Store(tmp_path / "chats.db")
    settings = Settings(
        data_dir=tmp_path, window_tokens=WINDOW_TOKENS, reply_tokens=64, summary="extractive",
        recall_share=0,
    )  # fmt: skip
    chat = Chat(settings=settings, store=store, engine=engine)
    conversation_id = store.create_conversation().id
    summaries = set()
    for n in range(18):
        text = f"Item {n}: the chair number {100 + n} goes to room {n}."
        *_, done = chat.reply(conversation_id, text)
        assert isinstance(done, TurnDone)
        trace = done.turn.trace
        assert trace is not None
        front = sum(s.tokens for s in trace.segments if s.kind in ("system", "summary", "turn"))
        assert n == 0 or done.turn.usage.cached_tokens >= front
        assert chat.wait_for_folds(20)
        summary = store.load(conversation_id).summary
        summaries.add(summary.covers if summary else 0)
    assert len(summaries) > 2
    chat.close()
    store.close()


def test_a_summary_from_elsewhere_is_held_to_the_cap(make: Make) -> None:
    rig = make(good, summary="off")
    turns = rig.talk(4)
    text = "The user has many chairs. " * 200
    summary = RollingSummary(text.strip(), 2, 1200)
    assert rig.store.save_summary(rig.id, summary, last_turn_id=turns[1].id)
    rig.ask("What now?")
    trace = rig.store.load_trace(rig.store.load(rig.id).turns[-1].id)
    assert trace is not None
    [shown] = [s for s in trace.segments if s.kind == "summary"]
    assert shown.tokens <= 80 + 24
    assert shown.text.endswith("chairs.")


def test_the_language_of_summaries_is_a_setting(make: Make) -> None:
    def korean(prompt: str) -> str:
        return "사용자는 의자마다 방을 정하고 도우미는 그것을 적어 둔다."

    rig = make(korean, summary_language="ko")
    rig.talk(16)
    assert all("당신은 대화를 기록합니다" in prompt for prompt in rig.summary_prompts)
    summary = rig.store.load(rig.id).summary
    assert summary is not None and summary.origin == "model"
    assert summary.text == korean("")
    rig.ask("What now?")
    assert "Summary of the earlier conversation" in rig.chat_prompts[-1], "labels stay as they are"
