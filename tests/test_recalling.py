"""Who gets how much of a prompt: recent turns, recalled excerpts, or both."""

from __future__ import annotations

import pytest

from chatbot.assemble import AssembledPrompt
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer
from chatbot.messages import Conversation, Fact, Message, RollingSummary, Turn
from chatbot.prompting import PromptBuilder
from chatbot.settings import Settings

WINDOW_TOKENS = 4096


def turn(number: int, question: str, reply: str = "I see.") -> Turn:
    user = Message(f"u{number}", "user", question)
    return Turn(f"t{number}", (user,), (Message(f"a{number}", "assistant", reply),))


def chat(*, covers: int = 30, n: int = 34, **said: str) -> Conversation:
    """A chat about hobbies; `u3="..."` is what the user says in turn 3."""
    turns = [turn(i, f"Hobby number {i} is fun, is it not?") for i in range(n)]
    for name, text in said.items():
        turns[int(name[1:])] = turn(int(name[1:]), text)
    summary = RollingSummary("They talk about hobbies.", covers, 5) if covers else None
    return Conversation("c1", turns=tuple(turns), summary=summary)


def built(conversation: Conversation, question: str, **settings: object) -> AssembledPrompt:
    given = Settings(window_tokens=WINDOW_TOKENS, **settings)  # type: ignore[arg-type]
    builder = PromptBuilder(ScriptedTokenizer(), given, None)
    return builder.build(conversation, question, builder.budget(WINDOW_TOKENS))


def recalled(prompt: AssembledPrompt) -> list[str]:
    return [s.message_ids[0] for s in prompt.trace.segments if s.kind == "recalled"]


def recalled_tokens(prompt: AssembledPrompt) -> int:
    return sum(s.tokens for s in prompt.trace.segments if s.kind == "recalled")


@pytest.mark.parametrize("message", ["Thanks!", "What is the capital of Mongolia?", "고마워!"])
def test_a_plain_turn_gets_no_old_excerpts_and_reads_only_itself(message: str) -> None:
    prompt = built(chat(u3="Thanks, great hobby!"), message)
    assert recalled(prompt) == []
    assert prompt.trace.segments[-1].text == message


def test_a_question_for_what_was_said_gets_the_old_turn_and_all_recent_ones() -> None:
    prompt = built(chat(u3="My invoice number is INV-20931."), "What is my invoice number?")
    assert "u3" in recalled(prompt)
    turns = [s.message_ids[0] for s in prompt.trace.segments if s.kind == "turn"]
    assert turns == ["u30", "u31", "u32", "u33"]


def test_a_question_that_asks_back_gets_more_than_one_that_touches_on_old_turns() -> None:
    said = {f"u{n}": f"The parrot of Bruno ate nut {n} of the harbour walk." * 4 for n in range(28)}
    conversation = chat(**said)
    much = built(conversation, "What did I say about the parrot of Bruno?")
    some = built(conversation, "When was the harbour walk of the parrot?")
    limit = much.trace.limit_tokens
    # Up to three lines more come as facts that are asked for.
    assert 0 < recalled_tokens(some) <= 0.2 * limit < recalled_tokens(much) <= 0.5 * limit
    less = built(conversation, "What did I say about the parrot of Bruno?", recall_share_asked=0.1)
    assert 0 < recalled_tokens(less) <= 0.2 * limit


def test_what_is_in_sight_is_not_recalled_once_more() -> None:
    conversation = chat(u3="The parrot likes nuts.", u32="The parrot likes nuts and seeds a lot.")
    prompt = built(conversation, "Which nuts and seeds are best for the parrot?")
    assert recalled(prompt) == []


def test_standing_instructions_stand_beside_the_summary_and_the_front_stays() -> None:
    conversation = chat(u5="Always answer in metric units, please.", u32="Never mind.")
    one = built(conversation, "How tall is the tower of Pisa?")
    two = built(conversation, "Hello there!")
    for prompt in (one, two):
        kinds = [s.kind for s in prompt.trace.segments]
        assert kinds[:3] == ["system", "summary", "summary"]
        held = prompt.trace.segments[2]
        assert held.message_ids == ("u5",) and "metric units" in held.text
        assert recalled(prompt) == []
        assert sum(s.tokens for s in prompt.trace.segments) == len(prompt.token_ids)
    shared = sum(s.tokens for s in one.trace.segments[:-1])
    assert one.token_ids[: shared - 1] == two.token_ids[: shared - 1]


def test_an_instruction_among_the_facts_is_not_said_twice() -> None:
    conversation = chat(u5="Always answer in metric units.")
    assert conversation.summary is not None
    facts = (Fact("Always answer in metric units.", "t5", "u5"),)
    summary = RollingSummary("Hobbies.", 30, 3, facts)
    known = Conversation("c1", turns=conversation.turns, summary=summary)
    prompt = built(known, "How tall is the tower of Pisa?")
    assert [s.kind for s in prompt.trace.segments].count("summary") == 1


def test_where_not_all_turns_fit_a_question_that_stands_alone_gets_mostly_old_ones() -> None:
    turns = [turn(n, f"Hobby {n}", "It is a fine hobby to have. " * 60) for n in range(40)]
    turns[3] = turn(3, "The invoice number is INV-20931.", "Noted. " * 200)
    conversation = Conversation("c1", turns=tuple(turns))
    alone = built(conversation, "Which invoice number came with hobby 17?")
    assert {"u3", "u17"} <= set(recalled(alone))
    plain = built(conversation, "Write a haiku about autumn leaves in Kyoto.")
    assert recalled_tokens(plain) <= 0.3 * plain.trace.limit_tokens
    assert sum(s.kind == "turn" for s in plain.trace.segments) > sum(
        s.kind == "turn" for s in alone.trace.segments
    )


def test_no_share_means_no_recall() -> None:
    conversation = chat(u3="My invoice number is INV-20931.", u5="Always use metric units.")
    prompt = built(conversation, "What is my invoice number?", recall_share=0.0)
    assert recalled(prompt) == []
