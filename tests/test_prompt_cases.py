"""Faults of comparable systems: budgets that leave no room, lost questions, malformed prompts.

Section A of the list of cases: BC-01 (a reply as long as the window), BC-03 (one message or the
system text too large), BC-04 (passages push out), BC-07 (counts), BC-08 (malformed); BC-05 (a
summary that grows) is in test_summary.py.
"""

from __future__ import annotations

import pytest

import prompts
from benchmarks.vocabulary import llama3_vocabulary
from chatbot.assemble import AssembledPrompt, assemble
from chatbot.budget import ContextBudget
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.errors import BudgetError
from chatbot.messages import Conversation, Message, Turn
from chatbot.prompt_pieces import PromptRequest
from chatbot.prompting import PromptBuilder
from chatbot.render import PieceEncoder
from chatbot.settings import Settings
from retrieval.types import Passage

TOKENIZER = ScriptedTokenizer()


def turn(number: int, question: str, reply: str) -> Turn:
    user = Message(f"u{number}", "user", question)
    return Turn(f"t{number}", (user,), (Message(f"a{number}", "assistant", reply),))


def built(conversation: Conversation, question: str, **settings: object) -> AssembledPrompt:
    given = Settings(**({"system_prompt": "Be brief."} | settings))  # type: ignore[arg-type]
    builder = PromptBuilder(TOKENIZER, given, None)
    return builder.build(conversation, question, builder.budget(given.window_tokens))


def occurrences(ids: tuple[int, ...], part: tuple[int, ...]) -> int:
    return sum(ids[i : i + len(part)] == part for i in range(len(ids) - len(part) + 1))


@pytest.mark.parametrize("reply_tokens", [255, 256, 300])
def test_a_reply_as_long_as_the_window_leaves_the_question_and_says_so(reply_tokens: int) -> None:
    turns = tuple(turn(n, f"Question {n}?", "An answer.") for n in range(30))
    question = "Which plums are ripe in August?"
    prompt = built(
        Conversation("c", turns=turns), question, window_tokens=256, reply_tokens=reply_tokens
    )
    assert prompt.trace.segments[-1].text.endswith(question)
    assert prompt.trace.prompt_tokens + prompt.trace.reply_tokens <= 256
    assert len(prompt.token_ids) == prompt.trace.prompt_tokens > 0
    assert "reply_shortened" in {notice.code for notice in prompt.trace.notices}


def test_a_message_larger_than_the_budget_keeps_both_ends_and_says_how_much_is_missing() -> None:
    message = "Tell me the code word.\n" + "filler words " * 1000 + "\nThe code word is PLUM-7."
    sizes = {"window_tokens": 500, "reply_tokens": 100}
    prompt = built(Conversation("c"), message, **sizes)
    asked = prompt.trace.segments[-1].text
    assert "Tell me the code word." in asked and asked.endswith("The code word is PLUM-7.")
    notice = next(n for n in prompt.trace.notices if n.code == "question_shortened")
    assert notice.values["tokens"] > 2000 and notice.values["left_out"] > 1000
    assert str(notice.values["left_out"]) in asked
    after = Conversation("c", turns=(turn(0, message, "PLUM-7."),))
    short = built(after, "Thanks, is it spelled with a hyphen?", **sizes)
    assert short.trace.segments[-1].text.endswith("Thanks, is it spelled with a hyphen?")
    assert len(short.token_ids) <= 400


def test_a_system_text_larger_than_the_budget_is_refused_with_a_figure() -> None:
    sizes = {"window_tokens": 500, "reply_tokens": 100}
    with pytest.raises(BudgetError, match="too many") as caught:
        built(Conversation("c"), "Hello?", system_prompt="rule " * 500, **sizes)
    assert caught.value.missing_tokens > 100
    assert "Hello?" in built(Conversation("c"), "Hello?", **sizes).trace.segments[-1].text


def test_the_best_passages_stay_whole_and_neither_system_text_nor_question_goes() -> None:
    texts = [f"Fact {n}. " + f"Sentence {n} says something. " * 45 for n in range(10)]
    passages = [
        Passage(n, "d", "report.txt", text, 0, len(text), 200, 1 - n / 20)
        for n, text in enumerate(texts)
    ]
    request = PromptRequest(
        conversation=Conversation("c", turns=(turn(0, "Hello?", "Hello!"),)),
        question="What are the facts?",
        system_text="You are helpful.",
        language="en",
        budget=ContextBudget(limit_tokens=900, reply_tokens=100),
        passages=passages,
    )
    prompt = assemble(request, PieceEncoder(TOKENIZER))
    sent = [s for s in prompt.trace.segments if s.kind == "passage"]
    assert 0 < len(sent) < 10
    assert [s.label for s in sent] == [str(n + 1) for n in range(len(sent))]
    assert all(texts[n] in s.text for n, s in enumerate(sent))
    assert [p.passage.text for p in prompt.passages] == texts[: len(sent)]
    assert prompt.trace.segments[0].text == "You are helpful."
    assert prompt.trace.segments[-1].text.endswith("What are the facts?")
    left = [d for d in prompt.trace.dropped if d.segment.kind == "passage"]
    assert len(left) == 10 - len(sent)


@pytest.mark.parametrize("n_turns", [0, 12])
def test_at_every_budget_the_prompt_is_well_formed_or_the_error_says_what_is_missing(
    n_turns: int,
) -> None:
    turns = tuple(
        turn(n, f"Question {n}: why is it so? " * (n % 3 + 1), "Because of that. " * n)
        for n in range(n_turns)
    )
    conversation, form = Conversation("c", turns=turns), TOKENIZER.chat_format
    encoder = PieceEncoder(TOKENIZER)
    fitted = 0
    for limit in range(20, 401):
        request = PromptRequest(
            conversation=conversation,
            question="And what is the newest question?",
            system_text="Be brief.",
            language="en",
            budget=ContextBudget(limit_tokens=limit, reply_tokens=16),
        )
        try:
            prompt = assemble(request, encoder)
        except BudgetError as error:
            assert error.missing_tokens > 0 and fitted == 0
            continue
        fitted += 1
        ids = prompt.token_ids
        kept = [s for s in prompt.trace.segments if s.kind == "turn"]
        assert len(ids) <= limit
        assert occurrences(ids, form.begin) == 1 and ids[: len(form.begin)] == form.begin
        # The user speaks first; each turn kept is a user's and an assistant's side, newest last.
        # The end of a prompt is the same step to the assistant.
        assert form.end == form.after_user
        assert occurrences(ids, form.after_user) == len(kept) + 1
        assert occurrences(ids, form.after_assistant) == len(kept) + 1  # as after the system text
        assert ids[-len(form.end) :] == form.end
        assert [s.message_ids[0] for s in kept] == [f"u{n}" for n in range(n_turns)][
            n_turns - len(kept) :
        ]
        assert prompt.trace.segments[-1].text == "And what is the newest question?"
    assert fitted > 300


def test_recalled_excerpts_say_who_spoke_and_when() -> None:
    said = Message("u0", "user", "My invoice is INV-20931.", created="2024-03-14")
    told = Message("a0", "assistant", "INV-20931 was paid by Ines.", name="Helper\nUser")
    turns = [Turn("t0", (said,), (told,))]
    turns += [turn(n, f"Hobby {n} " * 30, "Nice. " * 60) for n in range(1, 40)]
    for language, speaker in (("en", "User"), ("ko", "사용자")):
        assert prompts.load("speaker_user", language) == speaker
        prompt = built(
            Conversation("c", turns=tuple(turns)),
            "What did I say about invoice INV-20931?",
            window_tokens=2048,
            language=language,
        )
        recalled = [s for s in prompt.trace.segments if s.kind == "recalled"]
        assert recalled[0].text.startswith(prompts.load("label_recalled", language))
        assert f"[{speaker}, 2024-03-14] My invoice is INV-20931." in recalled[0].text
        assert any("[Helper User] INV-20931 was paid" in s.text for s in recalled)


@pytest.mark.parametrize(
    "text",
    [
        "내일 오전 열 시에 대전역에서 만나서 회의 자료를 함께 검토하기로 했습니다. " * 5,
        "👩‍👩‍👧🇰🇷😀🎉👍🏽" * 12,
        "def f(x):\n    return {k: v for k, v in x.items() if v != -1}\n" * 4,
        "3141592653589793238462643383279502884197" * 5,
        "https://example.org/" + "a1-b2_c3/" * 53,
    ],
    ids=["korean", "emoji", "code", "digits", "address"],
)
def test_counts_are_those_of_the_vocabulary_in_use(text: str) -> None:
    tokenizer = load_tokenizer(llama3_vocabulary())
    builder = PromptBuilder(tokenizer, Settings(), None)
    talked = Conversation("c", turns=(turn(0, text, text), turn(1, "And now?", "Fine.")))
    prompt = builder.build(talked, text, builder.budget(8192))
    assert len(prompt.token_ids) == prompt.trace.prompt_tokens
    assert sum(segment.tokens for segment in prompt.trace.segments) == prompt.trace.prompt_tokens
    plain = len(tokenizer.encode(text))
    question = prompt.trace.segments[-1]
    assert plain <= question.tokens <= plain + 12
    assert tokenizer.decode(prompt.token_ids).count(text.strip()) == 3
