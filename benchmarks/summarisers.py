"""What writes the summaries of a benchmark: scripted bad ones, a stand-in, or the demo model."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import Protocol

from chatbot.errors import EngineError
from chatbot.fold_call import SummaryCall
from chatbot.fold_types import ModelReply
from chatbot.messages import Finish
from chatbot.parts import load_engine
from chatbot.prompting import PromptBuilder
from chatbot.settings import Settings


class Summarise(Protocol):
    """(system text, user text, most tokens) -> ModelReply."""

    def __call__(self, system: str, user: str, max_tokens: int) -> ModelReply: ...

    def close(self) -> None: ...


_BAD: dict[str, tuple[str, Finish]] = {
    "empty": ("", "stop"),
    "apology": ("I'm sorry, but I cannot summarise this. Please provide the conversation.", "stop"),
    "apology_ko": ("죄송하지만 요약할 대화 내용을 제공해 주세요.", "stop"),
    "language": (
        "El usuario habla de su proyecto y el asistente le da una lista de pasos.",
        "stop",
    ),
    "answer": ("Sure! Here is how you can do it: first install the package, then run it.", "stop"),
    "invention": ("The user met Bartholomew Quigley in Timbuktu on 3 May 1874.", "stop"),
    "endless": ("The user asks and the assistant answers and the user asks ", "length"),
    "skeleton": ("Goals: None\nDecisions: None\nOpen questions: None", "stop"),
    "role": ("User: hello\nAssistant: hello, how can I help?", "stop"),
}


class Scripted:
    """Gives the texts in turn, over and over."""

    def __init__(self, *names: str) -> None:
        self._texts = itertools.cycle([_BAD[name] for name in names or _BAD])

    def __call__(self, system: str, user: str, max_tokens: int) -> ModelReply:
        text, finish = next(self._texts)
        if finish == "length":
            text *= max_tokens
        return ModelReply(text, finish, min(max_tokens, len(text.split())))

    def close(self) -> None:
        """Nothing to do."""


class Failing:
    """Raises at every call."""

    def __call__(self, system: str, user: str, max_tokens: int) -> ModelReply:
        raise EngineError("The scripted summariser fails.")

    def close(self) -> None:
        """Nothing to do."""


class Demo:
    """The embedded demo model, in its own window and counted by its own tokenizer."""

    def __init__(self) -> None:
        self._exit = ExitStack()
        engine = self._exit.enter_context(closing(load_engine(Settings(model="demo"))))
        engine.wait()
        settings = Settings()
        builder = PromptBuilder(engine.tokenizer, settings, None)
        self._call = SummaryCall(
            engine, builder.encoder, settings.repetition_penalty, threading.Event()
        )

    def __call__(self, system: str, user: str, max_tokens: int) -> ModelReply:
        return self._call(system, user, max_tokens)

    def close(self) -> None:
        self._exit.close()


SUMMARISERS: dict[str, Callable[[], Summarise]] = {
    "bad": Scripted,
    "failing": Failing,
    "demo": Demo,
    "empty": partial(Scripted, "empty"),
    "apology": partial(Scripted, "apology", "apology_ko"),
    "language": partial(Scripted, "language"),
}
