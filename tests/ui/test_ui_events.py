"""Tabs, tickets and events of a reply, and the names of files that are saved."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from chatbot.messages import (
    Conversation,
    Notice,
)
from chatbot.ui.calls import Call, checked_id
from chatbot.ui.desk import Desk, Tab
from chatbot.ui.export import file_name
from chatbot.ui.live import advanced, waiting_for
from chatbot.ui.pump import Pump
from chatbot.ui.view import LiveReply, live_parts
from tests.ui.samples import trace, turn


def test_one_reply_at_a_time_in_a_conversation_and_each_tab_stops_its_own() -> None:
    desk = Desk()
    first = desk.claim("c1", "tab1", LiveReply("a"))
    other = desk.claim("c2", "tab2", LiveReply("b"))
    assert first and other and desk.claim("c1", "tab2", LiveReply("x")) is None
    desk.leave("tab1")
    assert first.stop.is_set() and not other.stop.is_set()
    desk.release(first)
    desk.release(first)
    assert desk.claim("c1", "tab2", LiveReply("x"))


def test_tabs_do_not_share_what_they_show() -> None:
    desk = Desk()
    desk.show("tab1", Tab("c1", "ko"))
    assert desk.tab("tab2") == Tab() and desk.tab("tab1").conversation_id == "c1"
    assert desk.more("tab1").shown == 60


def test_a_file_and_a_question_at_once_come_to_the_same_new_chat() -> None:
    desk, made = Desk(), iter(("c1", "c2"))
    # Both have read the tab before either of them began a chat.
    before = desk.tab("tab1")
    begun = [desk.begin("tab1", before, lambda: next(made)).conversation_id for _ in range(2)]
    assert begun == ["c1", "c1"] and desk.tab("tab1").conversation_id == "c1"
    assert desk.begin("tab2", Tab("c9"), lambda: next(made)) == Tab("c9")


class Loading:
    """An embedding model that is fetched until it is there."""

    is_loading = True


def test_a_reply_says_that_it_waits_for_the_embedding_model_while_it_does() -> None:
    embedder = Loading()
    live = waiting_for(LiveReply("q"), embedder)  # type: ignore[arg-type]
    for language, words in (("en", "Getting the embedding model"), ("ko", "임베딩 모델을 준비")):
        assert words in live_parts(live, language)[-1].text  # type: ignore[arg-type]
    embedder.is_loading = False
    live = waiting_for(live, embedder)  # type: ignore[arg-type]
    assert live.phase == "waiting" and waiting_for(live, None) == live


def test_events_move_a_live_reply_on() -> None:
    from chatbot.chat import ContextReady, NoticeEvent, Queued, TurnDone
    from chatbot.engine.base import TextDelta

    live = advanced(LiveReply("q"), Queued(3))
    assert (live.phase, live.position) == ("waiting", 3)
    assert waiting_for(live, Loading()) is live  # type: ignore[arg-type]
    live = advanced(advanced(live, ContextReady(trace())), NoticeEvent(Notice("a", "b")))
    assert live.phase == "reading" and live.trace and live.notices
    live = advanced(advanced(live, TextDelta("one ")), TextDelta("two"))
    assert (live.phase, live.text) == ("writing", "one two")
    assert advanced(live, TurnDone(turn(1))) == live


@pytest.mark.parametrize("bad", ["../x", "a/b", "", None, 7, ["a"], "a b", "x" * 101, "a\n"])
def test_ids_of_another_form_are_refused(bad: object) -> None:
    assert checked_id(bad) == ""
    assert Call("s", "o", data={"id": bad}).id() == ""


def test_a_pump_hands_on_items_errors_and_the_end_and_stops_its_source() -> None:
    pump = Pump((n for n in (1, 2)), lambda: None)
    assert [pump.next(5), pump.next(5)] == [1, 2]
    for _ in range(2):
        with pytest.raises(StopIteration):
            pump.next(5)
    pump.close()

    stop = threading.Event()

    def endless() -> Iterator[int]:
        yield 1
        stop.wait()
        raise ValueError("stopped")

    pump = Pump(endless(), stop.set)
    assert pump.next(5) == 1 and pump.next(0.01) is None
    pump.close()
    with pytest.raises(ValueError, match="stopped"):
        pump.next(5)


def test_the_name_of_an_export_fits_every_file_system() -> None:
    made = Conversation("c", 'a/b:"c" <대화>')
    assert file_name(made, "md") == "a b c 대화.md"
    assert file_name(Conversation("c"), "json") == "chat.json"
