"""A restart gives the same next prompt, byte for byte, and calls no model."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hands_rig import Rig
from store_samples import long_chat

from chatbot.export_messages import export_conversation
from chatbot.import_messages import parse_messages
from chatbot.messages import Conversation, Message, Turn
from chatbot.store import Store

QUESTIONS = ("And now?", "Where does chair number 103 go?", "그 의자는 어디로 가나요?")

PROGRAM = """
import sys
from pathlib import Path
from hands_rig import Rig
rig = Rig(Path(sys.argv[1]))
for question in sys.argv[3:]:
    budget = rig.chat.budget()
    prompt = rig.chat.builder.build(rig.store.load(sys.argv[2]), question, budget)
    print(",".join(map(str, prompt.token_ids)))
rig.chat.wait_for_folds(5)
print(len(rig.engine.calls))
rig.close()
"""


def prompts(rig: Rig, conversation_id: str) -> list[str]:
    conversation, budget = rig.store.load(conversation_id), rig.chat.budget()
    built = [rig.chat.builder.build(conversation, q, budget) for q in QUESTIONS]
    return [",".join(map(str, prompt.token_ids)) for prompt in built]


def in_new_process(folder: Path, conversation_id: str) -> list[str]:
    """The prompts, and at last how often the model was called."""
    command = [sys.executable, "-c", PROGRAM, str(folder), conversation_id, *QUESTIONS]
    tests = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {tests!r})\n" + PROGRAM
    command[2] = code
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_new_process_builds_the_same_prompt(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    turns = rig.talk(16)
    rig.chat.edit_summary(rig.id, "Ana keeps chairs. 의자는 김민수가 옮긴다.")
    rig.chat.add_fact(rig.id, "My desk is number 77.")
    rig.chat.pin_fact(rig.id, rig.summary.facts[0].id, True)
    rig.talk(6, start=16)
    rig.chat.forget_turn(rig.id, turns[3].id)
    rig.edit(rig.now.turns[-2].id, "Let us count the tables.")
    expected, conversation_id = prompts(rig, rig.id), rig.id
    rig.close()
    *found, calls = in_new_process(tmp_path, conversation_id)
    assert found == expected
    assert calls == "0"


def talk_of(turns: int) -> Conversation:
    def turn(n: int) -> Turn:
        text = f"Item {n}: chair number {100 + n} goes to room {n}."
        reply = "That is noted, and the plan stays as it is. " * 6
        said = Message(f"a{n}", "assistant", reply)
        return Turn(f"t{n}", (Message(f"u{n}", "user", text),), (said,))

    return Conversation("imported", turns=tuple(turn(n) for n in range(turns)))


def test_an_export_taken_elsewhere_builds_the_same_prompt(tmp_path: Path) -> None:
    """With all that was remembered: nothing is folded anew there."""
    here, there = Rig(tmp_path / "here"), Rig(tmp_path / "there")
    here.store.import_conversation(talk_of(40))
    here.id = "imported"
    here.talk(3, start=40)
    here.chat.add_fact(here.id, "My desk is number 77.")
    assert here.summary.covers > 20
    exported = json.loads(json.dumps(export_conversation(here.store.load_whole(here.id))))
    there.store.import_conversation(parse_messages(exported))
    assert prompts(there, here.id) == prompts(here, here.id)
    there.chat._folding.schedule(here.id)
    assert there.chat.wait_for_folds(10)
    assert there.summary_prompts == []
    here.close()
    there.close()


def test_an_imported_chat_far_beyond_the_window_recovers_in_one_turn(tmp_path: Path) -> None:
    """40 turns, more than five times the window: every call fits, and the question is answered."""
    rig = Rig(tmp_path)
    rig.store.import_conversation(talk_of(40))
    tokens = sum(len(rig.engine.tokenizer.encode(t.question + t.reply)) for t in talk_of(40).turns)
    assert tokens > 5 * 512
    turn = rig.ask("Where does chair number 103 go?", "imported")
    assert turn.finish == "stop"
    assert "goes to room 3." in rig.chat_prompts[0]
    assert all(len(call.prompt_ids) < 512 for call in rig.engine.calls)
    assert rig.store.load("imported").summary is not None
    rig.close()


@pytest.mark.parametrize("turns", [700])
def test_a_long_chat_is_imported_and_asked_in_seconds(tmp_path: Path, turns: int) -> None:
    rig = Rig(tmp_path, window_tokens=2048)
    started = time.perf_counter()
    rig.store.import_conversation(parse_messages(export_conversation(long_chat(turns))))
    trace = rig.chat.context("long", "오늘 날씨가 어때요?")
    took_s = time.perf_counter() - started
    print(f"import of {turns} turns and the first prompt: {took_s:.2f} s")
    assert trace.prompt_tokens <= trace.limit_tokens
    assert took_s < 15
    rig.close()


def test_what_was_done_to_facts_outlasts_an_import_too(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.talk(20)
    own = rig.chat.add_fact(rig.id, "My desk is number 77.")
    gone = rig.summary.facts[0]
    rig.chat.delete_fact(rig.id, gone.id)
    again = rig.store.import_conversation(rig.store.load_whole(rig.id))
    rig.id = again.id
    rig.edit(again.turns[1].id, "Let us begin again.")
    assert rig.summary.facts == (own,)
    assert gone.id in rig.summary.deleted
    rig.close()


def test_deleted_and_forgotten_things_are_not_exported(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    turns = rig.talk(16)
    fact = rig.summary.facts[0]
    rig.chat.delete_fact(rig.id, fact.id)
    forgotten = next(turn for turn in turns if turn.id != fact.turn_id)
    rig.chat.forget_turn(rig.id, forgotten.id)
    whole = rig.store.load_whole(rig.id)
    written = json.dumps(export_conversation(whole))
    assert forgotten.question not in written
    with Store(tmp_path / "other.db") as other:
        again = other.import_conversation(parse_messages(json.loads(written)))
        assert again.summary == whole.summary
        assert fact.id in (again.summary.deleted if again.summary else ())
    rig.close()
