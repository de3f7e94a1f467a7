"""First come, first served, with positions that people can be shown."""

from __future__ import annotations

import threading

from chatbot.reply_queue import ReplyQueue


def test_positions_move_up_as_others_leave() -> None:
    queue = ReplyQueue()
    with queue.ticket() as third_wants_nothing:
        assert third_wants_nothing.position == 0
    with queue.ticket() as first:
        second = queue.ticket()
        waiting = second.__enter__()
        assert (first.position, waiting.position, queue.length) == (0, 1, 2)
        assert not waiting.wait(0.01)
    assert waiting.wait(0)
    second.__exit__(None, None, None)
    assert queue.length == 0


def test_the_order_of_arrival_is_kept() -> None:
    queue = ReplyQueue()
    served: list[int] = []
    arrived = [threading.Event() for _ in range(8)]

    def customer(number: int) -> None:
        with queue.ticket() as ticket:
            arrived[number].set()
            assert ticket.wait(10)
            served.append(number)

    with queue.ticket():
        threads = [threading.Thread(target=customer, args=(n,)) for n in range(8)]
        for number, thread in enumerate(threads):
            thread.start()
            assert arrived[number].wait(10)
    for thread in threads:
        thread.join(10)
    assert served == list(range(8))


def test_two_places() -> None:
    queue = ReplyQueue(places=2)
    with queue.ticket() as first, queue.ticket() as second, queue.ticket() as third:
        assert [t.position for t in (first, second, third)] == [0, 0, 1]


def test_whoever_gives_up_makes_room() -> None:
    queue = ReplyQueue()
    with queue.ticket():
        gone = queue.ticket()
        gone.__enter__()
        with queue.ticket() as last:
            assert last.position == 2
            gone.__exit__(None, None, None)
            assert last.position == 1
