"""After a restart folds go on as they would have: backing off, with the notice still to tell."""

from __future__ import annotations

from pathlib import Path

from chatbot.chat import Chat
from chatbot.fold_history import backoff_of, untold_refusal
from chatbot.messages import FoldDecision
from tests.fold_rig import Rig

GOOD = "The user assigns numbered chairs to rooms, and the assistant takes note of it."


def restarted(rig: Rig) -> None:
    rig.chat.close()
    rig.chat = Chat(settings=rig.chat.settings, store=rig.store, engine=rig.engine)


def test_the_decisions_lead_to_the_state_that_the_program_had(tmp_path: Path) -> None:
    answers = iter(["", "", "", "", "", "", GOOD, "", "", GOOD])
    rig = Rig(tmp_path, lambda prompt: next(answers, ""))
    for n in range(40):
        rig.talk(1, start=n)
        known = rig.chat._fold_job._backoffs.get(rig.id)
        if known is not None:
            assert backoff_of(rig.store.fold_decisions(rig.id)) == known
    assert backoff_of(rig.store.fold_decisions(rig.id)).refusals > 0
    rig.close()


def test_a_restart_does_not_ask_a_model_that_is_being_spared(tmp_path: Path) -> None:
    calls = []
    for name, with_restarts in (("one", False), ("other", True)):
        (tmp_path / name).mkdir()
        rig = Rig(tmp_path / name, lambda prompt: "")
        for n in range(30):
            rig.talk(1, start=n)
            if with_restarts:
                restarted(rig)
        calls.append(len(rig.summary_prompts))
        rig.close()
    assert calls[0] == calls[1] > 1


def test_what_was_refused_before_a_restart_is_told_with_the_next_turn_and_once(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, lambda prompt: "")
    n = 0
    while not any(not d.accepted for d in rig.store.fold_decisions(rig.id)):
        rig.talk(1, start=n)
        n += 1
    restarted(rig)
    told = []
    for turn in rig.talk(2, start=n):
        trace = rig.store.load_trace(turn.id)
        assert trace is not None
        told.append("summary_refused" in {notice.code for notice in trace.notices})
    assert told[0]
    rig.close()


def test_old_refusals_and_odd_times_are_not_told() -> None:
    refused = FoldDecision("2026-01-01T10:00:00+00:00", 4, False, None, ("empty",))
    spared = FoldDecision("2026-01-01T10:00:00+00:00", 4, False, None, ("model not asked: x",))
    assert untold_refusal([refused], "2026-01-01T09:59:59.500+00:00") is not None
    assert untold_refusal([refused], "2026-01-01T10:00:00.700+00:00") is not None
    assert untold_refusal([refused], "2026-01-01T10:00:02+00:00") is None
    assert untold_refusal([spared], "2026-01-01T09:00:00+00:00") is None
    assert untold_refusal([refused], "yesterday") is None
    assert untold_refusal([], "2026-01-01T09:00:00+00:00") is None
