"""What `benchmarks.shared_database` finds wrong in the conversations that it made."""

from __future__ import annotations

from collections import Counter

from chatbot.messages import Turn
from chatbot.store import Store


def own_faults(store: Store, chat: str, number: int, n_turns: int) -> list[str]:
    """What is wrong in a conversation whose questions came one after the other."""
    expected = [f"question number c{number}-{turn}" for turn in range(n_turns)]
    found = [turn.question for turn in store.load(chat).turns]
    faults = [] if found == expected else [f"{chat}: {found} in place of {expected}"]
    return faults + _replies(store, chat) + _folds(store, chat)


def common_faults(store: Store, chat: str, number: int, n_turns: int) -> list[str]:
    """The same where two processes were asked in one conversation at once.

    There a question that was cut off stays, once the other user has gone on after it.
    """
    turns = store.load(chat).turns
    found = [turn.question for turn in turns if not _is_cut_off(turn)]
    faults = []
    for at in (0, 1):
        name = f"question number b{number}p{at}-"
        mine = [question for question in found if question.startswith(name)]
        if mine != [f"{name}{turn}" for turn in range(n_turns)]:
            faults.append(f"{chat}: of {name} there is {mine}")
    if len(found) != 2 * n_turns:
        faults.append(f"{chat}: {len(found)} turns")
    return faults + _replies(store, chat) + _folds(store, chat)


def _replies(store: Store, chat: str) -> list[str]:
    faults = []
    for turn in store.load(chat).turns:
        if _is_cut_off(turn) and turn.question.startswith("question number b"):
            continue
        name = turn.question.removeprefix("question number ")
        if turn.finish != "stop" or f"number {name} is" not in turn.reply:
            faults.append(f"{chat}: {turn.question} has {turn.finish} {turn.reply!r}")
    return faults


def _is_cut_off(turn: Turn) -> bool:
    return turn.finish == "interrupted" and not turn.reply


def _folds(store: Store, chat: str) -> list[str]:
    covered = Counter(version.covers for version in store.summary_versions(chat))
    return [f"{chat}: folded twice up to {n}" for n, times in covered.items() if times > 1]
