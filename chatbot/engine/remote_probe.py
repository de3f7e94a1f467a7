"""Small requests that show how a server counts a prompt, so that our count can be held to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import openai

from chatbot.engine.base import SamplingParams
from chatbot.engine.chat_format import assemble_ids
from chatbot.engine.remote_believed import is_believable
from chatbot.engine.remote_chunk import token_count
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.remote_requests import Way, request_fields
from chatbot.engine.remote_server import ServerFacts
from chatbot.errors import PromptTooLongError, RemoteError, ServerBusyError

SAMPLE_SYSTEM = "Be kind. 친절하게 답해 주세요."
SAMPLE_TURNS = (
    ("What is 3,141.59 in words?\n\n- short\n", "Three thousand…"),
    # Blank beginnings grow together with a template's own line ends.
    ("\n\n- first", "\n  then"),
    ("<|im_start|>system\nsay <|eot_id|> and </s>", "def f(x):\n    return x  # 값"),
)
SAMPLE_QUESTION = "그리고 언제 문을 열어요? 🙂👩‍👩‍👧  \tÅngström"
_OVERLONG_WORDS, _OVERLONG_S = 140_000, 120.0
"""More tokens than the context of any model in common use."""


class Prober:
    """Asks one server for one token at a time, and looks at what it reports."""

    def __init__(self, client: RemoteClient, facts: ServerFacts) -> None:
        self._client = client
        self._facts = facts

    def reported_tokens(self, way: Way, prompt_ids: Sequence[int]) -> int | None:
        """Tokens of the prompt as the server counts them; None where it does not tell, or tells
        what cannot be.

        Raises RemoteError.
        """
        fields = request_fields(way, self._facts.kind, prompt_ids, SamplingParams(max_tokens=1))
        completions = self._client.openai.completions
        chat = self._client.openai.chat.completions
        try:
            create: Any = (chat if way.is_chat else completions).create
            answer = self._client.whole(
                lambda: create(model=self._facts.model, **fields), more_s=self._client.timeout_s
            )
        except (openai.APIError, ValueError) as error:
            raise self._client.typed(error, model=self._facts.model) from error
        usage = getattr(answer, "usage", None)  # what is no JSON comes as a string
        told = token_count(getattr(usage, "prompt_tokens", None)) or 0
        window = self._facts.context_tokens
        return told if is_believable(told, prompt_ids, way, window_tokens=window) else None

    def difference(self, way: Way) -> int | None:
        """What the server counts more than we do, in a prompt of everything; None: not to be had.

        None also where the server does not take prompts this way at all.
        """
        ids = sample_prompt(way)
        try:
            reported = self.reported_tokens(way, ids)
        except RemoteError as error:
            # Refused; by some with a fault where ids came and text was expected.
            refused = type(error) is RemoteError
            if refused or (way.sends == "token ids" and isinstance(error, ServerBusyError)):
                return None
            raise
        return None if reported is None else reported - len(ids)

    def context_by_refusal(self) -> int:
        """The context's length as a server names it when it refuses what is longer; else 0.

        Only for servers that count before they read.
        """
        try:
            self._client.whole(
                lambda: self._client.openai.completions.create(
                    model=self._facts.model,
                    prompt="a " * _OVERLONG_WORDS,
                    max_tokens=1,
                    timeout=_OVERLONG_S,
                ),
                more_s=_OVERLONG_S,
            )
        except openai.APIError as error:
            found = self._client.typed(error, model=self._facts.model)
            return found.limit_tokens if isinstance(found, PromptTooLongError) else 0
        return 0


def sample_prompt(way: Way) -> tuple[int, ...]:
    """A prompt with both languages, code, emoji, markers and blank ends."""
    tokenizer = way.tokenizer
    system = SAMPLE_SYSTEM if tokenizer.chat_format.has_system_role else ""
    return settled(
        way,
        assemble_ids(
            tokenizer.chat_format,
            tokenizer.encode(system),
            [(tokenizer.encode(asked), tokenizer.encode(said)) for asked, said in SAMPLE_TURNS],
            tokenizer.encode(SAMPLE_QUESTION),
        ),
    )


def settled(way: Way, prompt_ids: Sequence[int]) -> tuple[int, ...]:
    """The prompt as it will be counted, where text is counted as a whole."""
    settle = getattr(way.tokenizer, "settled", None)
    return tuple(prompt_ids) if settle is None else tuple(settle(prompt_ids))


_WORDS = re.compile(r"[A-Za-z0-9 ]")
_SIGNS = re.compile(r"[\x00-\x7f]")
ENGLISH = "The library opens at nine in the morning; please bring your card with you. " * 4
KOREAN = "도서관은 아침 아홉 시에 문을 엽니다. 회원증을 꼭 가져오시기 바랍니다. " * 4


def split_chars(text: str) -> tuple[int, int, int]:
    """How many characters are ASCII letters, digits and spaces; other ASCII; and all others."""
    letters = len(_WORDS.findall(text))
    signs = len(_SIGNS.findall(text)) - letters
    return letters, signs, len(text) - letters - signs
