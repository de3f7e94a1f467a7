"""RemoteEngine: any OpenAI-compatible server makes the replies; see `Engine`.

The prompt is made and counted on our side. Knows who asks and what is told of the server;
`remote_reply` makes one reply, `remote_ways` says how prompts get there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Protocol

from chatbot.engine.base import (
    ChatTokenizer,
    EngineEvent,
    EngineInfo,
    EngineStatus,
    Finished,
    SamplingParams,
)
from chatbot.engine.reach import Reach
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.remote_faults import is_context
from chatbot.engine.remote_local import local_context, local_tokenizer, tiktoken_counters
from chatbot.engine.remote_probe import Prober, settled
from chatbot.engine.remote_reply import RemoteReply, own_figures
from chatbot.engine.remote_requests import Way
from chatbot.engine.remote_server import ServerFacts, look_at
from chatbot.engine.remote_vocabulary import ServerTokenizer
from chatbot.engine.remote_watch import ServerWatch
from chatbot.engine.remote_ways import choose_way
from chatbot.errors import (
    EngineError,
    InputError,
    PromptTooLongError,
    RemoteError,
    SettingsError,
    UntoldContextError,
)
from chatbot.messages import MemoryFigures, Usage
from chatbot.settings import Settings

log = logging.getLogger(__name__)

SEAM_TOKENS = 16
"""Kept free where a prompt is counted as a whole only after it was put together by pieces."""
ESTIMATE_SHARE = 0.05
"""Kept free of the window where counts are estimates."""


_NEVER_TELL = ("OpenAI", "Ollama", "llama-cpp-python")
"""Of these, no other answer is to be expected from another question."""
MAX_DIGITS = 12
"""Shown of a number that cannot be."""


class LoadReport(Protocol):
    """Who is told how far the connecting is."""

    def __call__(self, message: str, progress: float | None = None) -> None: ...

    def offer_tokenizer(self, tokenizer: ChatTokenizer) -> None: ...


def connect(settings: Settings, report: LoadReport) -> RemoteEngine:
    """Look at the server of the settings. Raises RemoteError, or SettingsError for what lacks."""
    assert settings.engine_url is not None
    key = settings.api_key.get_secret_value() if settings.api_key is not None else None
    client = RemoteClient(settings.engine_url, key, timeout_s=settings.engine_timeout_s)
    try:
        report(f"Asking {client.shown} what it is.")
        facts = look_at(client, settings.model)
        facts = replace(facts, context_tokens=_context(client, facts, settings))
        report(f"Comparing counts with {client.shown}.")
        way = choose_way(
            client,
            facts,
            local=local_tokenizer(settings, facts, progress=report),
            counters=lambda: tiktoken_counters(facts),
        )
        report.offer_tokenizer(way.tokenizer)
        return RemoteEngine(client, facts, way)
    except BaseException:
        client.close()
        raise


def _context(client: RemoteClient, facts: ServerFacts, settings: Settings) -> int:
    """The length of the server's context, at most that of the settings. Raises SettingsError."""
    known, wanted = facts.context_tokens, settings.window_tokens
    if not known and not wanted and facts.kind == "llama-cpp-python":
        known = Prober(client, facts).context_by_refusal()  # takes seconds
    if not known and facts.kind == "transformers":
        known = local_context(settings, facts)
    told = "does not tell how long its context is; set --window-tokens to it."
    if known and not is_context(known):
        digits = str(known)
        claim = digits if len(digits) <= MAX_DIGITS else f"{digits[:MAX_DIGITS]}…"
        told = f"says that its context has {claim} tokens, which cannot be; set --window-tokens to "
        told += "its true length."
        log.warning("The server's claim about the length of its context is not believed")
        known = 0
    if not known and not wanted:
        kind = SettingsError if facts.kind in _NEVER_TELL else UntoldContextError
        raise kind(f"The server {client.shown} {told}")
    return min(known or wanted, wanted or known)


class RemoteEngine:
    """See `Engine`. Replies at once are the server's affair."""

    def __init__(self, client: RemoteClient, facts: ServerFacts, way: Way) -> None:
        self._client = client
        self._facts = facts
        self._way = way
        self._watch = ServerWatch(client, facts.model)
        self._window_tokens = facts.context_tokens
        self._told: str = ""
        self._closed = False

    @property
    def info(self) -> EngineInfo:
        """What the server is, and how its tokens are counted."""
        details = {
            "server": self._client.shown,
            "server_kind": self._facts.kind,
            "sends": self._way.sends,
            "counted_by": self._way.counted_by,
            "estimated": self._way.estimated,
            "context_tokens": self._window_tokens,
        }
        return EngineInfo(
            model=self._facts.model,
            max_window_tokens=self._window_tokens - self._kept_free(),
            device=self._facts.kind,
            details=details,
        )

    @property
    def tokenizer(self) -> ChatTokenizer:
        return self._way.tokenizer

    @property
    def status(self) -> EngineStatus:
        if self._closed:
            return EngineStatus("failed", "The engine is closed.")
        sentence = f"{self._facts.model} is ready at {self._client.shown}."
        if self._way.estimated:
            sentence += " Its tokens are estimated, since the server does not count them."
        return EngineStatus("ready", sentence, 1.0)

    def reach(self) -> Reach:
        """See `Distant.reach`."""
        return self._watch.reach()

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        """See `Engine.generate`. Raises RemoteError; PromptTooLongError when a smaller prompt may
        do, since the server's context is shorter than it was."""
        given = tuple(prompt_ids)
        self._check(given, params)
        prompt = settled(self._way, given)
        stop = stop or Event()
        if stop.is_set():
            yield Finished("cancelled", "", (), Usage(prompt_tokens=len(prompt)))
            return
        reply = RemoteReply(
            self._client, self._facts, self._way, prompt_ids=prompt, params=params, stop=stop
        )
        try:
            yield from self._watch.following(reply.events())
        except PromptTooLongError as error:
            if 0 < error.limit_tokens < self._window_tokens:
                self._window_tokens = error.limit_tokens
            raise
        except RemoteError:
            # It may be that it does not know ids that it told itself, and they are kept.
            if isinstance(self._way.tokenizer, ServerTokenizer):
                self._way.tokenizer.forget()
            raise
        finally:
            self._compare(len(prompt), reply.reported_tokens)

    def reported_tokens(self, prompt_ids: Sequence[int]) -> int | None:
        """Tokens of a prompt by the server's own count; None where it tells none. One request."""
        return Prober(self._client, self._facts).reported_tokens(
            self._way, settled(self._way, prompt_ids)
        )

    def forget(self, conversation_id: str) -> None:
        """Nothing: the server's cache is its own."""

    def memory(self) -> MemoryFigures:
        """Of this process alone; what the server takes is not known here."""
        return own_figures()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._closed = True
        self._client.close()

    def _kept_free(self) -> int:
        if self._way.estimated:
            return int(self._window_tokens * ESTIMATE_SHARE)
        return 0 if self._way.sends == "token ids" else min(SEAM_TOKENS, self._window_tokens // 8)

    def _check(self, prompt: tuple[int, ...], params: SamplingParams) -> None:
        if self._closed:
            raise EngineError("The engine is closed.")
        if not prompt:
            raise InputError("The prompt is empty; give at least one token.")
        if params.max_tokens < 1:
            raise InputError("A reply needs at least one token; raise max_tokens.")
        excess = len(prompt) + params.max_tokens - self._window_tokens
        if excess > 0:
            message = (
                f"The prompt ({len(prompt)} tokens) and the reply ({params.max_tokens}) exceed "
                f"the window of {self._window_tokens} by {excess}; shorten the prompt or the reply."
            )
            raise InputError(message)

    def _compare(self, counted: int, reported: int | None) -> None:
        """A count that the server contradicts is an estimate from then on."""
        if reported is None or reported == counted or self._way.estimated:
            return
        log.warning("The server counts %s tokens where we count %s", reported, counted)
        self._way = replace(self._way, estimated=True)
        if hasattr(self._way.tokenizer, "estimated"):
            self._way.tokenizer.estimated = True
