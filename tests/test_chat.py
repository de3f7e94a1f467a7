"""One turn in its order: prompts, stops, failures, retries, edits, folds, and many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chatbot.chat import Chat, ChatEvent, NoticeEvent, Queued, TextDelta, TurnDone
from chatbot.engine.scripted import Script, ScriptedEngine, ScriptedReply
from chatbot.errors import BudgetError, EngineError, InputError, OutOfMemoryError, StoreError
from chatbot.messages import Turn
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.embed import ScriptedEmbedder
from retrieval.pipeline import Library

MakeChat = Callable[..., "Rig"]


class Rig:
    """A chat over a scripted engine, with everything a test wants to look at."""

    def __init__(self, folder: Path, script: Script, **options: object) -> None:
        self.engine = ScriptedEngine(script, window_tokens=4096)
        self.settings = Settings(data_dir=folder, **({"window_tokens": 1024} | options))  # type: ignore[arg-type]
        self.store = Store(folder / "chats.db")
        self.library = Library(
            folder / "library",
            embedder=ScriptedEmbedder(),
            count_tokens=lambda text: len(self.engine.tokenizer.encode(text)),
        )
        self.chat = Chat(
            settings=self.settings, store=self.store, engine=self.engine, library=self.library
        )
        self.id = self.store.create_conversation().id

    def ask(self, text: str, conversation_id: str | None = None) -> Turn:
        return done(list(self.chat.reply(conversation_id or self.id, text)))

    def prompts(self) -> list[str]:
        return [call.prompt_text for call in self.engine.calls]

    def close(self) -> None:
        self.chat.close()
        self.library.close()
        self.store.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeChat]:
    rigs: list[Rig] = []

    def build(script: Script = lambda text, ids: "All right.", **options: object) -> Rig:
        rig = Rig(tmp_path, script, **options)
        rigs.append(rig)
        return rig

    yield build
    for rig in rigs:
        rig.close()


def done(events: list[ChatEvent]) -> Turn:
    assert isinstance(events[-1], TurnDone)
    assert sum(isinstance(event, TurnDone) for event in events) == 1
    return events[-1].turn


def test_a_turn_is_answered_and_stored_with_its_trace(make: MakeChat) -> None:
    rig = make(["The capital is Lisbon."])
    events = list(rig.chat.reply(rig.id, "What is the capital of Portugal?"))
    turn = done(events)
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    assert turn.reply == text == "The capital is Lisbon."
    stored = rig.store.load(rig.id)
    assert stored.turns[0].reply == text
    assert stored.turns[0].finish == "stop"
    assert stored.title.startswith("What is the capital")
    trace = rig.store.load_trace(turn.id)
    assert trace is not None
    assert trace.prompt_tokens == len(rig.engine.calls[0].prompt_ids)


def test_every_reply_knows_what_was_said_before(make: MakeChat) -> None:
    rig = make()
    rig.ask("My name is Ada.")
    rig.ask("What is my name?")
    assert "My name is Ada." in rig.prompts()[1]
    assert rig.prompts()[1].count("What is my name?") == 1


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_an_empty_question_is_refused_and_nothing_is_stored(make: MakeChat, text: str) -> None:
    rig = make()
    with pytest.raises(InputError, match="empty"):
        list(rig.chat.reply(rig.id, text))
    assert rig.store.load(rig.id).turns == ()


def test_a_system_text_that_does_not_fit_is_refused_with_figures(make: MakeChat) -> None:
    rig = make(window_tokens=128, system_prompt="word " * 400)
    with pytest.raises(BudgetError, match=r"too many"):
        rig.ask("Hello?")
    assert rig.store.load(rig.id).turns == ()


@pytest.mark.parametrize("stop_after", [0, 3])
def test_a_stopped_reply_is_kept_and_the_next_turn_works(make: MakeChat, stop_after: int) -> None:
    stalled = ScriptedReply("one two three four five six", stall_after_tokens=4)
    # A reply that is stopped before it begins never reaches the engine.
    rig = make([stalled, "Fine."] if stop_after else ["Fine."])
    stop = threading.Event()
    if stop_after == 0:
        stop.set()
    events = []
    for event in rig.chat.reply(rig.id, "Count.", stop=stop):
        events.append(event)
        if sum(isinstance(e, TextDelta) for e in events) >= max(stop_after, 1):
            rig.chat.stop(rig.id)
    turn = done(events)
    assert turn.finish == "cancelled"
    assert "one two three four five six".startswith(turn.reply)
    assert bool(turn.reply) == bool(stop_after)
    assert rig.ask("And now?").finish == "stop"
    assert "Count." in rig.prompts()[-1]


def test_closing_the_iterator_keeps_what_was_there(make: MakeChat) -> None:
    rig = make([ScriptedReply("one two three four", stall_after_tokens=3), "Fine."])
    events = rig.chat.reply(rig.id, "Count.")
    for event in events:
        if isinstance(event, TextDelta):
            break
    events.close()  # type: ignore[attr-defined]
    stored = rig.store.load(rig.id).turns[0]
    assert stored.finish == "cancelled"
    assert stored.reply
    assert stored.reply_token_ids == rig.engine.tokenizer.encode(stored.reply)
    assert not rig.chat.is_running(rig.id)
    assert rig.ask("Again?").reply == "Fine."


@pytest.mark.parametrize(
    ("error", "finish"),
    [(OutOfMemoryError("Memory ran out."), "memory"), (EngineError("It broke."), "error")],
)
@pytest.mark.parametrize("after", [0, 5])
def test_a_failed_reply_ends_the_turn_and_not_the_chat(
    make: MakeChat, error: EngineError, finish: str, after: int
) -> None:
    text = "one two three four five six seven eight"
    rig = make([ScriptedReply(text, fail_after_tokens=after, error=error), "Better."])
    events = list(rig.chat.reply(rig.id, "Go."))
    turn = done(events)
    assert turn.finish == finish
    assert bool(turn.reply) == bool(after)
    assert any(isinstance(e, NoticeEvent) and e.notice.text == str(error) for e in events)
    assert rig.store.load(rig.id).turns[0].finish == finish
    assert rig.ask("Once more.").reply == "Better."


def test_a_fault_in_the_engine_is_kept_with_the_turn_and_raised(make: MakeChat) -> None:
    rig = make([ScriptedReply("text", fail_after_tokens=1, error=ZeroDivisionError("oops")), "Ok."])
    with pytest.raises(ZeroDivisionError):
        rig.ask("Go.")
    assert rig.store.load(rig.id).turns[0].finish == "error"
    assert rig.ask("Again.").reply == "Ok."


def test_retry_replaces_the_last_turn(make: MakeChat) -> None:
    rig = make(["First.", "Second.", "Third."])
    rig.ask("One?")
    rig.ask("Two?")
    turn = done(list(rig.chat.retry(rig.id)))
    assert turn.reply == "Third."
    assert [t.reply for t in rig.store.load(rig.id).turns] == ["First.", "Third."]
    assert "Second." not in rig.prompts()[-1]
    assert rig.prompts()[-1] == rig.prompts()[-2]


def test_a_retry_of_a_finished_reply_is_drawn_anew(make: MakeChat) -> None:
    rig = make(["First.", "Second.", ScriptedReply("Third.", fail_after_tokens=0), "Fourth."])
    rig.ask("One?")
    list(rig.chat.retry(rig.id))
    assert [call.params.temperature for call in rig.engine.calls] == [0.0, 0.7]
    list(rig.chat.retry(rig.id))
    # A reply that failed is simply made again.
    list(rig.chat.retry(rig.id))
    assert [call.params.temperature for call in rig.engine.calls[2:]] == [0.7, 0.0]


def test_a_reply_that_cannot_be_stored_is_kept_and_stored_later(
    make: MakeChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make(["The first reply.", "The second reply."])

    def locked(conversation_id: str, turn: Turn) -> None:
        raise StoreError("The database is locked.")

    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "finish_turn", locked)
        turn = rig.ask("One?")
    assert turn.reply == "The first reply."
    assert "not_stored" in [notice.code for notice in turn.notices]
    assert rig.store.load(rig.id).turns[0].reply == ""
    rig.ask("Two?")
    assert [t.reply for t in rig.store.load(rig.id).turns] == [
        "The first reply.",
        "The second reply.",
    ]
    assert "The first reply." in rig.prompts()[-1]


def test_retry_without_a_question_says_so(make: MakeChat) -> None:
    rig = make()
    with pytest.raises(InputError, match="no question"):
        list(rig.chat.retry(rig.id))


def test_an_edit_leaves_no_trace_of_later_turns(make: MakeChat) -> None:
    rig = make()
    turns = [rig.ask(f"Marker {name}-{n}.") for n, name in enumerate("ABCDEFGHIJ")]
    done(list(rig.chat.edit(rig.id, turns[2].id, "Marker edited.")))
    prompt = rig.prompts()[-1]
    assert "Marker A-0" in prompt and "Marker B-1" in prompt and "Marker edited." in prompt
    assert not any(f"Marker {name}-" in prompt for name in "CDEFGHIJ")
    assert len(rig.store.load(rig.id).turns) == 3


def test_only_one_reply_at_a_time_in_a_conversation(make: MakeChat) -> None:
    rig = make([ScriptedReply("one two three", stall_after_tokens=1)])
    events = rig.chat.reply(rig.id, "First?")
    next(e for e in events if isinstance(e, TextDelta))
    with pytest.raises(InputError, match="still being answered"):
        rig.ask("Second?")
    assert len(rig.store.load(rig.id).turns) == 1
    events.close()  # type: ignore[attr-defined]


def test_other_conversations_wait_in_a_visible_queue(make: MakeChat) -> None:
    rig = make([ScriptedReply("one two three", stall_after_tokens=1), "Later."])
    other = rig.store.create_conversation().id
    first = rig.chat.reply(rig.id, "First?")
    next(e for e in first if isinstance(e, TextDelta))
    second = rig.chat.reply(other, "Second?")
    assert next(e for e in second if isinstance(e, Queued)).position == 1
    first.close()  # type: ignore[attr-defined]
    assert done(list(second)).reply == "Later."


def test_stopping_while_queued(make: MakeChat) -> None:
    rig = make([ScriptedReply("one two", stall_after_tokens=1), "Never."])
    other = rig.store.create_conversation().id
    first = rig.chat.reply(rig.id, "First?")
    next(e for e in first if isinstance(e, TextDelta))
    second = rig.chat.reply(other, "Second?")
    next(e for e in second if isinstance(e, Queued))
    rig.chat.stop(other)
    assert done(list(second)).finish == "cancelled"
    first.close()  # type: ignore[attr-defined]
    assert len(rig.engine.calls) == 1


def test_many_conversations_at_once_do_not_mix(make: MakeChat) -> None:
    rig = make(window_tokens=512)
    ids = [rig.store.create_conversation().id for _ in range(8)]

    def talk(number: int) -> None:
        for turn in range(5):
            rig.ask(f"code-{number}-word {turn}", ids[number])

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(rig.engine.calls) >= 40
    for call in rig.engine.calls:
        if call.conversation_id in ids:
            mine = ids.index(call.conversation_id)
            assert f"code-{mine}-word" in call.prompt_text
            assert not any(f"code-{n}-word" in call.prompt_text for n in range(8) if n != mine)
    assert all(len(rig.store.load(i).turns) == 5 for i in ids)


def test_a_question_about_a_document_cites_it(make: MakeChat, tmp_path: Path) -> None:
    rig = make(["The warranty lasts 24 months [1].", "The warranty lasts 36 months."])
    path = tmp_path / "manual.txt"
    path.write_text("The device is blue.\n\nThe warranty lasts 24 months from purchase.\n")
    report = rig.library.ingest(path)
    rig.store.set_documents(rig.id, [report.document_id or ""])
    turn = rig.ask("How long does the warranty last?")
    assert "warranty lasts 24 months from purchase" in rig.prompts()[0]
    assert turn.citations[0].document == "manual.txt"
    text = rig.library.document_text(turn.citations[0].document_id)
    assert text[turn.citations[0].start : turn.citations[0].end] == turn.citations[0].quote
    assert turn.best_sentence is not None
    assert "24 months" in turn.best_sentence.quote
    assert turn.unsupported == ()
    wrong = rig.ask("How long does the warranty last?")
    assert wrong.unsupported == ("The warranty lasts 36 months.",)


def test_a_message_larger_than_the_window_becomes_a_document(make: MakeChat) -> None:
    rig = make(window_tokens=400)
    filler = "\n".join(f"Line {n} says nothing of interest." for n in range(150))
    message = f"Tell me the code word.\n{filler}\nThe code word is PLUM-7."
    turn = rig.ask(message)
    assert {n.code for n in turn.notices} >= {"question_attached", "question_shortened"}
    prompt = rig.prompts()[0]
    assert "Tell me the code word." in prompt and "The code word is PLUM-7." in prompt
    assert rig.store.load(rig.id).turns[0].question == message
    [document] = rig.library.documents()
    assert rig.store.load(rig.id).document_ids == (document.id,)
    assert rig.ask("Thanks!").finish == "stop"


def test_the_context_of_a_draft_calls_no_model(make: MakeChat) -> None:
    rig = make()
    rig.ask("My name is Ada.")
    trace = rig.chat.context(rig.id, "What is my name?")
    assert len(rig.engine.calls) == 1
    assert len(rig.store.load(rig.id).turns) == 1
    rig.ask("What is my name?")
    assert trace.prompt_tokens == len(rig.engine.calls[1].prompt_ids)


def test_a_restart_gives_the_same_next_prompt(make: MakeChat, tmp_path: Path) -> None:
    rig = make()
    for n in range(4):
        rig.ask(f"Question number {n}?")
    before = rig.chat.context(rig.id, "And then?")
    rig.close()
    again = make()
    assert again.chat.context(rig.id, "And then?") == before
