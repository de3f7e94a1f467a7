"""When to fold, which turns, and in which pieces. Pure; knows no model, no prompt and no gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import prompts
from chatbot.messages import Message, Turn
from retrieval.sentences import sentence_cells
from retrieval.types import CountTokens

MAX_BACKOFF = 6
"""At most 2**6 folds in a row go without asking the model."""


def plan_fold(
    turn_tokens: Sequence[int],
    covered: int,
    *,
    window_tokens: int,
    high: float,
    low: float,
    min_recent_turns: int,
    fold_turns: int = 1,
) -> range | None:
    """Which turns to fold next; None while there is nothing to do.

    `turn_tokens` are those of the finished turns, oldest first; a turn that is being answered is
    not among them. `covered` of them stand in the summary already. When the others exceed the
    share `high` of the window, the oldest are folded until the share `low` is left and at least
    `fold_turns` are folded, but never the newest `min_recent_turns`: a new summary costs a call
    and what the cache holds of the prompt, so many small folds cost more than few large ones.
    """
    assert 0 <= covered <= len(turn_tokens), "more turns covered than there are"
    left_tokens = sum(turn_tokens[covered:])
    if left_tokens <= high * window_tokens:
        return None
    stop = covered
    last_foldable = len(turn_tokens) - max(0, min_recent_turns)
    while stop < last_foldable and (
        left_tokens > low * window_tokens or stop - covered < fold_turns
    ):
        left_tokens -= turn_tokens[stop]
        stop += 1
    return range(covered, stop) if stop > covered else None


def first_that_fit(turn_tokens: Sequence[int], room_tokens: int) -> int:
    """How many of the first turns fill the room; one at least.

    For a fold that somebody waits for: an import's thousand turns would hold up a question for
    seconds. The others come with the next question.
    """
    return max(1, sum(total <= room_tokens for total in accumulate(turn_tokens)))


@dataclass(frozen=True, slots=True)
class FoldBackoff:
    """After `refusals` model summaries refused for good, the next 2**refusals folds ask no model.

    A summary that the gate refuses is asked for once more, with the stricter prompt, at the next
    opportunity (`strict`), so that no turn ever costs two calls; only then it is refused for good.
    Kept per conversation; `after` gives the next state.
    """

    refusals: int = 0
    skip_folds: int = 0
    strict: bool = False

    @property
    def may_ask(self) -> bool:
        """Whether the next fold may call the model."""
        return self.skip_folds == 0

    def after(self, *, asked: bool, accepted: bool, final: bool = True) -> FoldBackoff:
        """The state after one fold. Not `final`: the retry with the stricter prompt is to come."""
        if not asked:
            return replace(self, skip_folds=max(0, self.skip_folds - 1))
        if accepted:
            return FoldBackoff()
        if not final:
            return replace(self, strict=True)
        refusals = min(self.refusals + 1, MAX_BACKOFF)
        return FoldBackoff(refusals, 2**refusals)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one summary call reads: a transcript of whole turns, or a part of a single one.

    `completes` is how many turns are behind us once the piece is folded.
    """

    transcript: str
    completes: int
    tokens: int


def transcript(turns: Sequence[Turn], language: str) -> str:
    """The turns as one text, each message behind its speaker, further lines indented.

    The indent keeps a line of a message that looks like a speaker from becoming one.
    """
    return "\n".join(_utterance(m, m.content, language) for m in _messages(turns))


def split_span(
    turns: Sequence[Turn], *, room_tokens: int, count_tokens: CountTokens, language: str
) -> list[Piece]:
    """Cut a span into pieces whose transcripts are at most `room_tokens` long, never empty.

    Whole turns stay together as far as they fit; a turn that does not fit alone is cut at
    sentences, and a sentence that does not fit alone at words. Turns without any text make no
    piece of their own but are completed by their neighbours.
    """
    pieces: list[Piece] = []
    group: list[Turn] = []
    group_tokens = 0
    for turn in turns:
        tokens = count_tokens(transcript([turn], language)) + 1
        if group and group_tokens + tokens > room_tokens:
            pieces.append(_whole(group, language, count_tokens))
            group, group_tokens = [], 0
        if tokens > room_tokens:
            pieces.extend(_parts_of(turn, room_tokens, count_tokens, language))
        else:
            group.append(turn)
            group_tokens += tokens
    if group:
        pieces.append(_whole(group, language, count_tokens))
    return _without_empty(pieces)


def _messages(turns: Sequence[Turn]) -> Iterator[Message]:
    for turn in turns:
        yield from (m for m in (*turn.user, *turn.assistant) if m.content.strip())


def _utterance(message: Message, content: str, language: str) -> str:
    label = "speaker_assistant" if message.role == "assistant" else "speaker_user"
    speaker = " ".join((message.name or "").split()) or prompts.load(label, language)
    return f"{speaker}: " + "\n  ".join(content.strip().splitlines())


def _whole(turns: Sequence[Turn], language: str, count_tokens: CountTokens) -> Piece:
    text = transcript(turns, language)
    return Piece(text, len(turns), count_tokens(text))


def _parts_of(
    turn: Turn, room_tokens: int, count_tokens: CountTokens, language: str
) -> Iterator[Piece]:
    """Parts of one long turn; only the last one completes it."""
    texts: list[str] = []
    for message in _messages([turn]):
        mark_tokens = count_tokens(_utterance(message, "", language)) + 2
        room = max(1, room_tokens - mark_tokens)
        texts += [
            _utterance(message, part, language)
            for part in split_text(message.content, room_tokens=room, count_tokens=count_tokens)
        ]
    for number, text in enumerate(texts, start=1):
        yield Piece(text, int(number == len(texts)), count_tokens(text))


def split_text(text: str, *, room_tokens: int, count_tokens: CountTokens) -> list[str]:
    """Cut a text into parts of at most `room_tokens`, at sentences, else words, else characters."""
    parts: list[str] = []
    current, current_tokens = "", 0
    for start, end in sentence_cells(text):
        for cell in _fitting(text[start:end], room_tokens, count_tokens):
            tokens = count_tokens(cell) + 1
            if current and current_tokens + tokens > room_tokens:
                parts.append(current)
                current, current_tokens = "", 0
            current += cell
            current_tokens += tokens
    parts.append(current)
    return [part for part in parts if part.strip()]


def _fitting(cell: str, room_tokens: int, count_tokens: CountTokens) -> Iterator[str]:
    """The cell itself, or the longest heads of it that fit, one after the other."""
    while cell and count_tokens(cell) > room_tokens:
        low, high = 1, len(cell)  # one character goes through in any case, so that this ends
        while high - low > 1:
            middle = (low + high) // 2
            fits = count_tokens(cell[:middle]) <= room_tokens
            low, high = (middle, high) if fits else (low, middle)
        space = cell.rfind(" ", low // 2, low)
        cut = space + 1 if space > 0 else low
        yield cell[:cut]
        cell = cell[cut:]
    if cell:
        yield cell


def _without_empty(pieces: Sequence[Piece]) -> list[Piece]:
    """Hand the turns of empty pieces to a neighbour; only a span without text gives nothing."""
    kept: list[Piece] = []
    waiting = 0
    for piece in pieces:
        if piece.transcript.strip():
            kept.append(replace(piece, completes=piece.completes + waiting))
            waiting = 0
        elif kept:
            kept[-1] = replace(kept[-1], completes=kept[-1].completes + piece.completes)
        else:
            waiting += piece.completes
    return kept
