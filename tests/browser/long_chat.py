"""Makes a long chat with a summary, facts and decisions, for the browser tests."""

from __future__ import annotations

from chatbot.messages import Conversation, Fact, FoldDecision, Message, RollingSummary, Turn
from tests.browser.person import Site


def long_chat(site: Site, name: str, n_turns: int) -> str:
    """A chat of `n_turns`, all but five of them folded, with facts and decisions."""
    turns = tuple(
        Turn(
            f"{name}{n}",
            (Message(f"{name}u{n}", "user", f"Question {n}?"),),
            (Message(f"{name}a{n}", "assistant", f"Answer {n}."),),
        )
        for n in range(1, n_turns + 1)
    )
    store = site.services.store
    store.import_conversation(Conversation(name, f"Chat {name}", turns))
    facts = (
        Fact("The dog is <Rex>.", f"{name}2", f"{name}u2", id="f1"),
        Fact(
            "We meet on 21 March.", f"{name}3", f"{name}u3", id="f2", earlier="We meet on 14 March."
        ),
    )
    store.save_summary(name, RollingSummary("They spoke of boats.", n_turns - 5, 6, facts))
    refused = FoldDecision("2026-01-02T03:04:05", 9, False, None, ("invented: Bob",), "Bob came.")
    store.add_fold_decisions(name, [refused])
    return name
