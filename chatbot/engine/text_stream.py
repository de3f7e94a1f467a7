"""Token ids one by one into whole characters, up to a stop string; knows nothing of models."""

from __future__ import annotations

from collections.abc import Sequence

from chatbot.engine.base import ChatTokenizer

_MARK = "\ufffd"
# Ids decoded again with each new one. An unfinished character is at most three bytes, so at
# most three ids; the rest is margin and costs microseconds.
_WINDOW_IDS = 8


class Detokenizer:
    """Gives the text of ids as soon as its characters are whole.

    All that it gives, joined, equals `tokenizer.decode` of all ids, without the replacement
    mark of a character that was never finished.
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        self._window: list[int] = []
        self._shown_chars = 0
        self.dropped_tail = False
        """Whether the ids ended inside a character, which was left out."""

    def push(self, token_id: int) -> str:
        """The characters that `token_id` completes; often none for Korean or emoji."""
        if token_id in self._tokenizer.control_ids:
            return ""
        self._window.append(token_id)
        text = self._tokenizer.decode(self._window)
        # Only the last mark can still become a character; earlier ones are really broken bytes.
        whole_chars = len(text) - 1 if text.endswith(_MARK) else len(text)
        new = text[self._shown_chars : whole_chars]
        self._shown_chars = max(self._shown_chars, whole_chars)
        if len(self._window) >= 2 * _WINDOW_IDS:
            self._shorten(held_chars=len(text) - whole_chars)
        return new

    def flush(self) -> str:
        """What is left at the end. An unfinished character is dropped and noted."""
        rest = self._tokenizer.decode(self._window)[self._shown_chars :]
        self._shown_chars += len(rest)
        if rest and not self._ends_with_real_mark():
            self.dropped_tail = True
            return ""
        return rest

    def _shorten(self, held_chars: int) -> None:
        self._window = self._window[-_WINDOW_IDS:]
        self._shown_chars = len(self._tokenizer.decode(self._window)) - held_chars

    def _ends_with_real_mark(self) -> bool:
        """Whether the model wrote U+FFFD itself, as it may when it repeats damaged text."""
        # After a letter, since some tokenizers begin a text with a space of their own.
        before = len(self._tokenizer.encode("x"))
        real = list(self._tokenizer.encode("x" + _MARK))[before:]
        return self._window[-len(real) :] == real


class StopMatcher:
    """Passes text on until a stop string is complete; never passes any part of one.

    The stop string that is complete first counts, however the text arrives in pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """The part of the text so far that certainly belongs to the reply."""
        if self.stopped:
            return ""
        text = self._held + text
        ends = [
            (start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0
        ]
        if ends:
            self.stopped = True
            self._held = ""
            return text[: min(ends)[1]]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """The text held back at the end: it was no stop string after all."""
        rest, self._held = self._held, ""
        return rest


class TextStream:
    """Ids in, whole characters out, ended by a stop string. `text` is all that came out."""

    def __init__(self, tokenizer: ChatTokenizer, stops: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stops = tuple(stops)
        self._detokenizer = Detokenizer(tokenizer)
        self._matcher = StopMatcher(stops)
        self._ids: list[int] = []
        self._parts: list[str] = []

    @property
    def stopped(self) -> bool:
        """Whether a stop string has appeared; nothing comes out any more."""
        return self._matcher.stopped

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def dropped_tail(self) -> bool:
        """Whether the reply ended inside a character, which was left out."""
        return self._detokenizer.dropped_tail

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Ids that stand for `text`: those given, or `text` encoded anew if it was cut."""
        if self.stopped or self.dropped_tail:
            return self._tokenizer.encode(self.text)
        return tuple(self._ids)

    def fresh(self) -> TextStream:
        """An empty one of the same tokenizer and stop strings."""
        return TextStream(self._tokenizer, self._stops)

    def push(self, token_id: int) -> str:
        """New text of the reply; may be empty."""
        if self.stopped:
            return ""
        self._ids.append(token_id)
        return self._out(self._matcher.push(self._detokenizer.push(token_id)))

    def finish(self) -> str:
        """The rest of the text after the last id."""
        rest = self._matcher.push(self._detokenizer.flush())
        return self._out(rest + self._matcher.flush())

    def _out(self, text: str) -> str:
        if text:
            self._parts.append(text)
        return text


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
