"""One sample of a case: what the user does, step by step, and what each turn showed.

Judges nothing; `judge` says what held.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from chatbot.chat_events import ChatEvent, TurnDone
from chatbot.engine.base import TextDelta
from chatbot.errors import InputError
from chatbot.messages import Message, Notice, Turn
from chatbot.records import new_id
from chatbot.regression.checks_limits import REFUSED
from chatbot.regression.deadline import Deadline
from chatbot.regression.observation import Observation
from chatbot.regression.script import SuiteScript
from chatbot.regression.steps import Step
from chatbot.regression.suite import Case
from chatbot.regression.target import Target
from chatbot.regression.user_actions import act
from chatbot.regression.watched import template_control_ids


@dataclass
class _Reply:
    """What came of one reply while it was made."""

    turn: Turn | None = None
    first_token_s: float | None = None
    deltas: int = 0
    refused: str = ""
    started_s: float = field(default_factory=time.perf_counter)


class Driver:
    """Has the conversation of one case with one target."""

    def __init__(self, case: Case, target: Target, script: SuiteScript, deadline: Deadline) -> None:
        self._case = case
        self._target = target
        self._script = script
        self._deadline = deadline
        self._ids: dict[str, str] = {}

    def run(self) -> Iterator[tuple[Step, str, Observation]]:
        """Every reply with its step and question. Raises TimeLimitError, and what faults raise."""
        for step in self._case.steps:
            for number in range(1, step.repeat + 1):
                self._deadline.check()
                if not step.replies:
                    act(self._target, self.conversation(step.conversation), step)
                    continue
                question = step.question(number)
                yield step, question, self._observe(step, question)

    def conversation(self, name: str) -> str:
        """The id of a conversation of the case; it is begun when it is first named."""
        if name not in self._ids:
            self._ids[name] = self._begin(name)
            self._target.uses(self._ids[name])
        return self._ids[name]

    def _begin(self, name: str) -> str:
        store, case = self._target.store, self._case
        if name == "main" and case.history is not None:
            system = case.system or case.history.system_text
            made = store.import_conversation(replace(case.history, system_text=system))
        else:
            made = store.create_conversation(system_text=case.system)
        # As in the program, another chat has no documents until it is given some.
        wanted = [document.name for document in case.documents if name == "main"]
        ids = {info.name: info.id for info in self._target.library.documents()}
        store.set_documents(made.id, [ids[name] for name in wanted if name in ids])
        return made.id

    def _observe(self, step: Step, question: str) -> Observation:
        target, conversation_id = self._target, self.conversation(step.conversation)
        before = target.store.load(conversation_id)
        if step.action != "ask":
            replaced = before.turns[self._place(step, len(before.turns))]
            question = question or replaced.question
            before = target.store.load(conversation_id, before=replaced.id)
        self._script.reply, self._script.question = step.reply, question
        target.engine.last = None
        reply = self._reply(step, question, conversation_id)
        latency_s = time.perf_counter() - reply.started_s
        self._wait_for_folds()
        turn = reply.turn or self._refused(question, reply.refused)
        n_turns = sum(s.kind == "turn" for s in turn.trace.segments) if turn.trace else 0
        memory = turn.usage.memory if turn.usage else None
        return Observation(
            turn=turn,
            before=before,
            after=target.store.load(conversation_id),
            call=target.engine.last,
            expected_control_ids=template_control_ids(target.engine.tokenizer, n_turns),
            forbidden_ids=target.engine.tokenizer.control_ids,
            window_tokens=target.window_tokens,
            latency_s=latency_s,
            first_token_s=reply.first_token_s,
            folds=len(target.store.summary_versions(conversation_id)),
            kv_bytes=memory.kv_bytes if memory else 0,
            process_bytes=memory.process_bytes if memory else 0,
            documents=self._documents(conversation_id),
            library_documents=len(target.library.documents()),
            similarity=target.similarity(),
        )

    def _place(self, step: Step, n_turns: int) -> int:
        """Where the turn that a step replaces stands."""
        place = n_turns if step.action == "retry" else step.turn
        if not 1 <= place <= n_turns:
            raise InputError(f"line {step.line}: there is no turn {place} to {step.action}")
        return place - 1

    def _reply(self, step: Step, question: str, conversation_id: str) -> _Reply:
        stop = threading.Event()
        self._deadline.watch(stop)
        if step.stop_after_tokens == 0:
            stop.set()
        reply = _Reply()
        try:
            self._follow(self._events(step, question, conversation_id, stop), step, stop, reply)
        except InputError as error:
            reply.refused = str(error)
            return reply
        self._deadline.check()
        if reply.turn is None:  # the reader has gone: what was stored counts
            stored = self._target.store.load(conversation_id).turns[-1]
            reply.turn = replace(stored, trace=self._target.store.load_trace(stored.id))
        return reply

    def _events(
        self, step: Step, question: str, conversation_id: str, stop: threading.Event
    ) -> Iterator[ChatEvent]:
        chat = self._target.chat
        if step.action == "retry":
            return chat.retry(conversation_id, stop=stop)
        if step.action == "edit":
            turns = self._target.store.load(conversation_id).turns
            return chat.edit(conversation_id, turns[step.turn - 1].id, question, stop=stop)
        return chat.reply(conversation_id, question, stop=stop)

    def _follow(
        self, events: Iterator[ChatEvent], step: Step, stop: threading.Event, reply: _Reply
    ) -> None:
        for event in events:
            if isinstance(event, TurnDone):
                reply.turn = event.turn
            if not isinstance(event, TextDelta):
                continue
            reply.deltas += 1
            if reply.first_token_s is None:
                reply.first_token_s = time.perf_counter() - reply.started_s
            if reply.deltas == step.stop_after_tokens:
                stop.set()
            if reply.deltas == step.close_after_tokens:
                events.close()  # type: ignore[attr-defined]
                return

    def _wait_for_folds(self) -> None:
        if not self._target.chat.wait_for_folds(self._deadline.left_s):
            self._deadline.ring_now()
        self._deadline.check()

    def _refused(self, question: str, sentence: str) -> Turn:
        asked = (Message(new_id(), "user", question),)
        return Turn(new_id(), asked, finish="error", notices=(Notice(REFUSED, sentence),))

    def _documents(self, conversation_id: str) -> Callable[[], dict[str, str]]:
        target = self._target

        def read() -> dict[str, str]:
            ids = target.store.load(conversation_id).document_ids
            infos = [info for info in target.library.documents() if info.id in ids]
            return {info.name: target.library.document_text(info.id) for info in infos}

        return read
