"""Faults of other programs' summaries, tried on a whole chat: section B of the list of cases.

BC-10, 11, 14, 16, 17 and 19 in this order; BC-13 (facts that vanish) is benchmarks/planted_facts,
on small chats in test_planted_facts.py; BC-20 (an edit before a fold) is below and in
test_chat_folds.py; BC-22 (stopped replies) in test_chat.py and test_template_cases.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chatbot.chat import TurnDone
from chatbot.engine.scripted import ScriptedReply
from chatbot.errors import EngineError
from chatbot.messages import Conversation, Message, RollingSummary, Turn
from tests.fold_rig import WINDOW_TOKENS, Answer, Rig

Make = Callable[..., Rig]
MARKERS = (
    *("Osprey", "Heron", "Plover", "Lapwing", "Curlew"),
    *("Bittern", "Gannet", "Merlin", "Harrier", "Godwit"),
)
FILLER = "The weather of the week stays mild and the paths by the river are dry. "


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    rigs: list[Rig] = []

    def build(summarise: Answer, **options: object) -> Rig:
        rigs.append(Rig(tmp_path, summarise, **options))
        return rigs[-1]

    yield build
    for rig in rigs:
        rig.close()


def good(prompt: str) -> str:
    return "The user assigns numbered chairs to rooms, and the assistant takes note of it."


def summary_of(rig: Rig) -> RollingSummary:
    summary = rig.store.load(rig.id).summary
    assert summary is not None
    return summary


def imported(rig: Rig, texts: list[tuple[str, str]]) -> None:
    """Put a ready conversation in the place of the empty one."""
    turns = tuple(
        Turn(f"t{n}", (Message(f"u{n}", "user", user),), (Message(f"a{n}", "assistant", reply),))
        for n, (user, reply) in enumerate(texts)
    )
    rig.id = rig.store.import_conversation(Conversation("long", "Long", turns)).id


def fits(rig: Rig) -> bool:
    return all(
        len(call.prompt_ids) + call.params.max_tokens <= WINDOW_TOKENS for call in rig.engine.calls
    )


def test_a_turn_that_does_not_fit_the_summariser_is_no_empty_transcript(make: Make) -> None:
    """Nothing fits the summariser, so its apology becomes the summary."""
    rig = make(lambda prompt: "Please provide the conversation that you want summarised.")
    reply = FILLER * 40 + "The launch code is PLUM-7. " + FILLER * 40
    imported(rig, [("Tell me all about it.", reply), *[("Go on.", "Fine so far.")] * 3])
    rig.talk(3)
    assert rig.summary_prompts
    assert all("weather of the week" in prompt for prompt in rig.summary_prompts)
    assert fits(rig)
    summary = summary_of(rig)
    assert "PLUM-7" in summary.text and "provide" not in summary.text
    decisions = rig.store.fold_decisions(rig.id)
    assert "apology" in " ".join(decisions[0].reasons)


def test_the_turn_that_crosses_the_mark_is_not_folded(make: Make) -> None:
    """The newest user message is swallowed by the fold."""
    rig = make(good)
    rig.talk(8)
    long = "Item 99 is a long one. " + FILLER * 12
    rig.ask(long)
    assert rig.chat_prompts[-1].count("Item 99 is a long one.") == 1
    assert not any("Item 99" in prompt for prompt in rig.summary_prompts)
    rig.ask("And now?")
    summary = summary_of(rig)
    assert "Item 99" not in summary.text
    assert rig.store.load(rig.id).turns[-2].question == long


def until(rig: Rig, done: Callable[[], bool], start: int) -> int:
    """Talk on until something has happened; the number of turns then."""
    for n in range(start, start + 24):
        if done():
            return n
        rig.talk(1, start=n)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize(
    "bad",
    [lambda prompt: "", lambda prompt: " \n ", lambda prompt: EngineError("It broke.")],
    ids=["empty", "blank", "raises"],
)
def test_a_failure_leaves_the_summary_as_it_was_and_is_told(
    make: Make, bad: Callable[[str], str | Exception]
) -> None:
    """A good summary is replaced by an empty skeleton or failure text."""
    rig = make(good)
    rig.talk(16)
    before, known = summary_of(rig), len(rig.store.fold_decisions(rig.id))
    assert before.origin == "model"
    rig.summarise = bad
    n = until(rig, lambda: len(rig.store.fold_decisions(rig.id)) > known, 16)
    assert summary_of(rig) == before
    assert len(rig.store.load(rig.id).turns) == n
    last = rig.store.fold_decisions(rig.id)[-1]
    assert not last.accepted and last.origin is None and last.reasons
    trace = rig.ask("What now?").trace
    assert trace is not None
    assert "summary_refused" in [notice.code for notice in trace.notices]
    assert before in rig.store.summary_versions(rig.id)


def test_a_summariser_that_never_ends_gives_way_and_then_is_done_without(make: Make) -> None:
    rig = make(good)
    rig.talk(16)
    before, calls = summary_of(rig), len(rig.summary_prompts)
    rig.summarise = lambda prompt: ScriptedReply("The user", stall_after_tokens=1)
    changed = []
    for n in range(16, 30):
        *_, done = rig.chat.reply(rig.id, f"Item {n}: the chair goes to room {n}.")
        assert isinstance(done, TurnDone) and done.turn.finish == "stop"
        rig.chat.wait_for_folds(0.2)
        if len(rig.summary_prompts) > calls:
            changed.append(summary_of(rig) != before)
    assert changed[0] is False
    assert changed[-1] and summary_of(rig).origin == "extractive"
    assert before in rig.store.summary_versions(rig.id)
    assert len(rig.store.load(rig.id).turns) == 30


def test_a_fold_without_new_turns_changes_nothing(make: Make) -> None:
    rig = make(good)
    rig.talk(16)
    before, calls = summary_of(rig), len(rig.summary_prompts)
    rig.chat._folding.schedule(rig.id)
    assert rig.chat.wait_for_folds(20)
    assert summary_of(rig) == before
    assert len(rig.summary_prompts) == calls


def test_a_chat_five_times_the_window_recovers_in_one_turn(make: Make) -> None:
    """The summarising call itself overflows the window."""
    rig = make(lambda prompt: "The user and the assistant talk about the mild weather.")
    imported(rig, [(f"Note {n}. " + FILLER * 2, FILLER * 2) for n in range(40)])
    total = sum(rig.chat.builder.encoder.turn(t).tokens for t in rig.store.load(rig.id).turns)
    assert total > 5 * WINDOW_TOKENS
    turn = rig.ask("What is the weather like?")
    assert turn.finish == "stop"
    assert fits(rig)
    assert len(rig.summary_prompts) > 2, "in pieces"
    summary = summary_of(rig)
    assert summary.covers >= 35
    assert "mild weather" in summary.text
    assert rig.ask("And tomorrow?").finish == "stop"
    assert "talk about the mild weather" in rig.chat_prompts[-1]


def test_the_old_summary_goes_into_the_new_one_and_only_that_is_read(make: Make) -> None:
    """The old summary is not merged, or read stale."""
    texts = iter(
        f"The user assigns {which} chairs to rooms." for which in ("the", "numbered", "some")
    )
    made: list[str] = []

    def summarise(prompt: str) -> str:
        made.append(next(texts))
        return made[-1]

    rig = make(summarise)
    n = 0
    while len(made) < 2:
        rig.talk(1, start=n)
        n += 1
    assert made[0] in rig.summary_prompts[1]
    rig.ask("What now?")
    assert summary_of(rig).text == made[1]
    assert made[1] in rig.chat_prompts[-1] and made[0] not in rig.chat_prompts[-1]


def test_what_the_summariser_drops_is_kept_and_recalled(make: Make) -> None:
    """The user still sees turns that the model no longer has, and gets a confident denial."""
    rig = make(good)
    rig.ask("By the way, my bicycle is green and its lock is a Kryptonite.")
    rig.talk(24)
    rig.ask("Did I tell you what colour my bicycle has?")
    prompt = rig.chat_prompts[-1]
    assert "details may be missing" in prompt
    assert "bicycle is green" in prompt
    assert "bicycle is green" in rig.store.load(rig.id).turns[0].question


def test_after_an_edit_neither_prompt_nor_summary_knows_the_branch_that_was_left(
    make: Make,
) -> None:
    """Markers before and behind the turn that is edited, and folds behind it that quote them."""

    def quoting(prompt: str) -> str:
        names = sorted({name for name in MARKERS if name in prompt})
        return f"The user names {', '.join(names) or 'a room'} and the assistant takes note of it."

    rig = make(quoting)
    turns = [
        rig.ask(f"The marker of step {n} is {name}. {FILLER * 3}") for n, name in enumerate(MARKERS)
    ]
    assert summary_of(rig).covers > 3
    *_, done = rig.chat.edit(rig.id, turns[2].id, f"The marker is Kestrel. {FILLER}")
    assert isinstance(done, TurnDone)
    rig.chat.wait_for_folds(20)
    rig.ask("Which markers do you know?")
    known, gone = MARKERS[:2], MARKERS[2:]
    assert all(name in rig.chat_prompts[-1] for name in (*known, "Kestrel"))
    assert not any(name in prompt for name in gone for prompt in rig.chat_prompts[-2:])
    summary = rig.store.load(rig.id).summary
    if summary is not None:
        said = " ".join((summary.text, *(fact.text for fact in summary.facts)))
        assert not any(name in said for name in gone)
