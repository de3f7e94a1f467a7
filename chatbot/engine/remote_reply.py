"""One reply from a server: asked again while that may help, cut off when it is to stop.

Knows no conversation; `remote` knows the server.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Event

import httpx
import openai

from chatbot.engine.base import EngineEvent, Finished, Prefilled, SamplingParams, TextDelta
from chatbot.engine.memory_meter import idle_figures
from chatbot.engine.remote_believed import is_believable, least_tokens
from chatbot.engine.remote_chunk import Chunk
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.remote_endings import check_ending, count_notices, ending_notices, is_length
from chatbot.engine.remote_faults import is_worth_another_try, lost, no_stream, silent, wordless
from chatbot.engine.remote_probe import Prober
from chatbot.engine.remote_requests import Way, request_fields
from chatbot.engine.remote_server import ServerFacts
from chatbot.engine.remote_stream import (
    Backoff,
    NoStreamError,
    RemoteStream,
    StreamCutError,
    StreamSilentError,
)
from chatbot.engine.text_stream import StopMatcher
from chatbot.errors import ConnectionLostError, RemoteError, ServerBusyError, TokenizerError
from chatbot.messages import Finish, MemoryFigures, Notice, Usage

ATTEMPTS, FIRST_WAIT_S, MOST_WAIT_S = 4, 0.5, 30.0
GRACE_S = 5.0
"""Beyond the longest silence, so that a server from which nothing at all comes is told as such."""
TOKEN_CHARS = 128
"""No vocabulary in use has longer tokens: what is longer than all of them ignores `max_tokens`."""


@dataclass(slots=True)
class _Read:
    """What has come so far of an attempt."""

    started: float
    first: float | None = None
    parts: list[str] = field(default_factory=list)
    n_chars: int = 0
    token_ids: list[int] | None = field(default_factory=list)
    """As the server tells them; None once a chunk came without."""
    finish: str | None = None
    last: Chunk = field(default_factory=Chunk)

    @property
    def text(self) -> str:
        return "".join(self.parts)


def own_figures() -> MemoryFigures:
    """Of this process alone: a server's memory is not known here, and there is no cache."""
    return replace(idle_figures(), kv_bound_bytes=0)


class RemoteReply:
    """Makes one reply."""

    def __init__(
        self,
        client: RemoteClient,
        facts: ServerFacts,
        way: Way,
        *,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        stop: Event,
    ) -> None:
        self._client = client
        self._facts = facts
        self._way = way
        self._prompt = tuple(prompt_ids)
        self._params = params
        self._stop = stop
        self._tries = 0
        self._asks_usage = True
        self._asked_why = False
        self._endings: list[Notice] = []
        self._odd_count: int | None = None
        self._read = _Read(time.perf_counter())
        self.reported_tokens: int | None = None
        """Tokens of the prompt by the server's count, once it has told."""

    def events(self) -> Generator[EngineEvent]:
        """See `Engine.generate`. Raises RemoteError."""
        backoff = Backoff(attempts=ATTEMPTS, first_s=FIRST_WAIT_S, most_s=MOST_WAIT_S)
        while True:
            try:
                yield from self._attempt()
                return
            except RemoteError as error:
                if self._asks_usage and "stream_options" in str(error):
                    self._asks_usage = False  # an older server, which refuses what it does not know
                    continue
                asked_s = error.retry_after_s if isinstance(error, ServerBusyError) else None
                may = is_worth_another_try(error) and self._read.first is None
                wait_s = backoff.next_s(asked_s) if may else None
                if wait_s is None:
                    raise
                if isinstance(error, ConnectionLostError):
                    self._learn_why()
            self._tries += 1
            if self._stop.wait(wait_s):
                yield self._finished("cancelled")
                return

    def _attempt(self) -> Iterator[EngineEvent]:
        self._read = _Read(time.perf_counter())
        fields = request_fields(self._way, self._facts.kind, self._prompt, self._params)
        fields |= {"model": self._facts.model}
        if self._asks_usage:
            fields["stream_options"] = {"include_usage": True}
        stream = RemoteStream(self._client, fields, is_chat=self._way.is_chat)
        matcher = StopMatcher((*self._params.stop, *self._way.end_texts))
        with closing(stream):
            try:
                yield from self._texts(stream, matcher)
            except StreamCutError:
                yield from self._flush(matcher)
                yield self._finished("cancelled")
                return
            except StreamSilentError as error:
                yield from self._flush(matcher)
                raise silent(self._client.shown, self._client.timeout_s) from error
            except NoStreamError as error:
                raise no_stream(self._client.shown, str(error)) from error
            except (openai.OpenAIError, httpx.HTTPError, OSError, ValueError) as error:
                yield from self._flush(matcher)
                came, model = bool(self._read.parts), self._facts.model
                raise self._client.typed(
                    error, model=model, began=stream.opened, text_came=came
                ) from error
        yield from self._flush(matcher)
        yield self._finished(self._ending(matcher))

    def _ending(self, matcher: StopMatcher) -> Finish:
        """How the reply ended. Raises RemoteError where what came is none, or only half of one."""
        reason = self._read.finish
        if matcher.stopped:
            return "stop"
        if reason is None and self._read.first is None:
            self._learn_why()
            raise wordless(self._client.shown)
        if reason is None:
            # A server that ends without a reason was ended itself.
            raise lost(self._client.shown)
        check_ending(reason, self._client.shown)
        self._endings = ending_notices(reason, self._read.text)
        return "length" if is_length(reason) else "stop"

    def _texts(self, stream: RemoteStream, matcher: StopMatcher) -> Generator[EngineEvent]:
        for chunk in stream.chunks(self._stop, silence_s=self._client.timeout_s + GRACE_S):
            read = self._read
            if read.first is None and (chunk.text or chunk.finish):
                read.first = time.perf_counter()
                cached = min(chunk.cached_tokens or 0, len(self._prompt))
                yield Prefilled(len(self._prompt), len(self._prompt), cached)
            left = self._params.max_tokens * TOKEN_CHARS - read.n_chars
            size = len(chunk.text) + chunk.n_thought
            if size > left:
                chunk = replace(chunk, text=chunk.text[:left], token_ids=None, finish="length")
            read.n_chars += size
            self._take(chunk)
            if text := matcher.push(chunk.text):
                read.parts.append(text)
                yield TextDelta(text)
            if matcher.stopped or size > left:
                return

    def _take(self, chunk: Chunk) -> None:
        read = self._read
        read.finish = chunk.finish or read.finish
        if chunk.token_ids is not None and read.token_ids is not None:
            read.token_ids += chunk.token_ids
        elif chunk.text:
            read.token_ids = None
        if chunk.prompt_tokens is not None:
            self._take_counts(chunk, chunk.prompt_tokens)
        elif chunk.cached_tokens is not None:
            read.last = replace(read.last, cached_tokens=chunk.cached_tokens)

    def _take_counts(self, chunk: Chunk, told: int) -> None:
        window = self._facts.context_tokens
        if is_believable(told, self._prompt, self._way, window_tokens=window):
            self._read.last, self.reported_tokens = chunk, told
        else:
            self._read.last, self._odd_count = replace(chunk, prompt_tokens=None), told

    def _flush(self, matcher: StopMatcher) -> Generator[EngineEvent]:
        if rest := matcher.flush():
            self._read.parts.append(rest)
            yield TextDelta(rest)

    def _learn_why(self) -> None:
        """Ask once without a stream, since some servers break one off where they refuse a prompt.
        Raises RemoteError with the reason, if there is one."""
        if not self._asked_why:
            self._asked_why = True
            Prober(self._client, self._facts).reported_tokens(self._way, self._prompt)

    def _finished(self, finish: Finish) -> Finished:
        read, now = self._read, time.perf_counter()
        ids = self._ids(read)
        first = read.first or now
        prompt_tokens = read.last.prompt_tokens or len(self._prompt)
        said, fewest = read.last.completion_tokens or 0, max(1, least_tokens(read.text))
        usage = Usage(
            prompt_tokens=prompt_tokens,
            cached_tokens=min(read.last.cached_tokens or 0, prompt_tokens),
            # What is beyond the limit that the server was given cannot be, nor less than words.
            completion_tokens=said if fewest <= said <= self._params.max_tokens else len(ids),
            prefill_s=first - read.started,
            decode_s=now - first,
            memory=own_figures(),
        )
        return Finished(finish, read.text, ids, usage, self._notices())

    def _ids(self, read: _Read) -> tuple[int, ...]:
        """The generated ids where the server tells them, else the text encoded anew."""
        tokenizer = self._way.tokenizer
        try:
            if read.token_ids:
                ends = tokenizer.chat_format.stop_ids
                ids = tuple(i for i in read.token_ids if i not in ends)
                if tokenizer.decode(ids) == read.text:
                    return ids
            return tokenizer.encode(read.text) if read.text else ()
        except TokenizerError:  # the reply is whole, and is encoded when it is next needed
            return ()

    def _notices(self) -> tuple[Notice, ...]:
        notices = [*self._endings]
        if self._tries:
            text = f"The server was not ready; it was asked {self._tries + 1} times."
            notices.append(Notice("remote_asked_again", text, {"times": self._tries + 1}))
        counted, cached = len(self._prompt), self._read.last.cached_tokens or 0
        told, odd, estimated = self.reported_tokens, self._odd_count, self._way.estimated
        return (*notices, *count_notices(told, cached, counted, estimated=estimated, odd=odd))
