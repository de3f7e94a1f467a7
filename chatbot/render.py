"""Texts to prompt pieces with their token ids, and pieces to one prompt. Knows no budget.

Order of a prompt, fixed so that its front stays the same from turn to turn: system text and
summary; recent turns; then one last user message with recalled excerpts, passages and the
question. Contents are encoded as ordinary text, so none can become a control token.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import prompts
from chatbot.engine.base import ChatFormat, ChatTokenizer
from chatbot.excerpts import Excerpt
from chatbot.facts import fact_line
from chatbot.messages import RollingSummary, Segment, SegmentKind, Turn
from retrieval.types import Passage, passage_in_prompt

KEPT_TURN_ENCODINGS = 4096
NO_REPLY = "…"
"""Stands for the missing side of a turn: templates want both."""

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a prompt: its ids, and the segment that describes it in the trace."""

    segment: Segment
    token_ids: Ids

    @property
    def tokens(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True, slots=True)
class TurnPiece:
    """A past turn: both sides as ids. `tokens` includes the turn's share of the template."""

    segment: Segment
    user_ids: Ids
    assistant_ids: Ids

    @property
    def tokens(self) -> int:
        return self.segment.tokens


@dataclass(frozen=True, slots=True)
class PromptParts:
    """Everything that was chosen for one prompt, each list in the order in which it stands."""

    system: Piece
    summary: Piece | None
    turns: tuple[TurnPiece, ...]
    recalled: tuple[Piece, ...]
    passages: tuple[Piece, ...]
    question: Piece
    standing: tuple[Piece, ...] = ()
    """Follows the summary."""


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The ids for the engine and the segments that they are made of."""

    token_ids: Ids
    segments: tuple[Segment, ...]


class PieceEncoder:
    """Makes pieces with one tokenizer; remembers the ids of past turns, which never change."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.tokenizer = tokenizer
        self._turns: OrderedDict[tuple[str, str, int], TurnPiece] = OrderedDict()

    @property
    def format(self) -> ChatFormat:
        return self.tokenizer.chat_format

    @property
    def estimates(self) -> bool:
        """Whether tokens are only estimated: the model is elsewhere, and so is its tokenizer."""
        return bool(getattr(self.tokenizer, "estimated", False))

    def settled(self, rendered: RenderedPrompt) -> RenderedPrompt:
        """The prompt as a server that is sent text will count it: where pieces meet, a whole has a
        few tokens less. The longest piece stands for the difference."""
        settle = getattr(self.tokenizer, "settled", None)
        if settle is None:
            return rendered
        ids = tuple(settle(rendered.token_ids))
        segments = list(rendered.segments)
        longest = max(range(len(segments)), key=lambda n: segments[n].tokens)
        tokens = segments[longest].tokens + len(ids) - len(rendered.token_ids)
        segments[longest] = replace(segments[longest], tokens=tokens)
        return RenderedPrompt(ids, tuple(segments))

    def count(self, text: str) -> int:
        """Tokens of a text as it stands inside a prompt."""
        return len(self.tokenizer.encode(text))

    def system(self, text: str) -> Piece:
        """The system text with the template's opening and the step to the first user turn."""
        ids = self.tokenizer.encode(text)
        share = len(self.format.begin) + len(self.format.after_system)
        return Piece(Segment("system", len(ids) + share, text), ids)

    def summary(self, summary: RollingSummary, language: str) -> Piece:
        """The summary and its facts, as they follow the system text."""
        text = ""
        if summary.text:
            text = f"\n\n{prompts.load('label_summary', language)}\n{summary.text}"
        if summary.facts:
            lines = "\n".join(f"- {fact_line(fact, language)}" for fact in summary.facts)
            text += "\n" if text else "\n\n"
            text += f"{prompts.load('label_facts', language)}\n{lines}"
        return self._piece("summary", text)

    def turn(self, turn: Turn) -> TurnPiece:
        """A past turn. Generated ids are used as they are when they are of this tokenizer."""
        key = (turn.id, turn.finish, len(turn.assistant))
        piece = self._turns.get(key)
        if piece is None:
            piece = self._encode_turn(turn)
            self._turns[key] = piece
            if len(self._turns) > KEPT_TURN_ENCODINGS:
                self._turns.popitem(last=False)
        return piece

    def forget(self) -> None:
        """Drop the turns that are kept encoded; they are encoded again at need."""
        self._turns.clear()

    def excerpt(self, excerpt: Excerpt, language: str, header: str = "") -> Piece:
        """An excerpt of an earlier turn, with who said it and when."""
        return self._excerpt("recalled", excerpt, language, header)

    def standing(self, excerpt: Excerpt, language: str) -> Piece:
        """The same for what holds for all later turns; it is part of the summary."""
        return self._excerpt("summary", excerpt, language, "")

    def _excerpt(self, kind: SegmentKind, excerpt: Excerpt, language: str, header: str) -> Piece:
        message = excerpt.message
        role = "speaker_assistant" if message.role == "assistant" else "speaker_user"
        speaker = one_line(message.name or prompts.load(role, language))
        when = f", {one_line(message.created)}" if message.created else ""
        note = f" ({excerpt.note})" if excerpt.note else ""
        before, behind = excerpt.marks
        text = f"[{speaker}{when}] {before}{excerpt.text}{behind}{note}\n"
        ids = (message.id, *excerpt.note_of)
        piece = self._piece(kind, header + text, message_ids=ids)
        start, end = excerpt.start, excerpt.end
        segment = replace(piece.segment, start=start, end=end, score=round(excerpt.score, 4))
        return replace(piece, segment=segment)

    def passage(self, passage: Passage, label: str) -> Piece:
        """A passage under its label, with document and page."""
        piece = self._piece("passage", passage_in_prompt(label, passage))
        segment = replace(
            piece.segment,
            document=passage.document,
            document_id=passage.document_id,
            page=passage.page,
            page_end=passage.page_end,
            start=passage.start,
            end=passage.end,
            label=label,
            score=round(passage.score, 4),
        )
        return replace(piece, segment=segment)

    def question(self, text: str, lead: str = "") -> Piece:
        """The question after its lead, with the template's step to the reply."""
        ids = self.tokenizer.encode(lead) + self.tokenizer.encode(text)
        return Piece(Segment("question", len(ids) + len(self.format.end), lead + text), ids)

    def with_header(self, piece: Piece, header: str) -> Piece:
        """The same piece behind a header; the header is encoded by itself, so counts add up."""
        ids = self.tokenizer.encode(header) + piece.token_ids
        segment = replace(piece.segment, text=header + piece.segment.text, tokens=len(ids))
        return Piece(segment, ids)

    def _piece(self, kind: SegmentKind, text: str, message_ids: tuple[str, ...] = ()) -> Piece:
        ids = self.tokenizer.encode(text)
        return Piece(Segment(kind, len(ids), text, message_ids), ids)

    def _encode_turn(self, turn: Turn) -> TurnPiece:
        question, reply = turn.question or NO_REPLY, turn.reply or NO_REPLY
        user_ids = self.tokenizer.encode(question)
        own = turn.tokenizer_name == self.tokenizer.name and len(turn.assistant) == 1
        kept = own and turn.reply_token_ids
        assistant_ids = turn.reply_token_ids if kept else self.tokenizer.encode(reply)
        share = len(self.format.after_user) + len(self.format.after_assistant)
        tokens = len(user_ids) + len(assistant_ids) + share
        segment = Segment("turn", tokens, f"{question}\n\n{reply}", turn.message_ids)
        return TurnPiece(segment, user_ids, assistant_ids)


def render(parts: PromptParts, chat_format: ChatFormat) -> RenderedPrompt:
    """Join the pieces. `sum(s.tokens for s in segments) == len(token_ids)` always."""
    ids: list[int] = [*chat_format.begin, *parts.system.token_ids]
    segments = [parts.system.segment]
    if parts.summary is not None:
        ids += parts.summary.token_ids
        segments.append(parts.summary.segment)
    for piece in parts.standing:
        ids += piece.token_ids
        segments.append(piece.segment)
    ids += chat_format.after_system
    for turn in parts.turns:
        ids += [*turn.user_ids, *chat_format.after_user]
        ids += [*turn.assistant_ids, *chat_format.after_assistant]
        segments.append(turn.segment)
    for piece in (*parts.recalled, *parts.passages, parts.question):
        ids += piece.token_ids
        segments.append(piece.segment)
    ids += chat_format.end
    assert sum(segment.tokens for segment in segments) == len(ids), "a piece was miscounted"
    return RenderedPrompt(tuple(ids), tuple(segments))


def one_line(text: str) -> str:
    """A name from outside on one line, so that it cannot pose as a piece of its own."""
    return " ".join(text.split())


def labels_for(passages: Sequence[Passage]) -> tuple[str, ...]:
    """The numbers that passages are cited by: their rank."""
    return tuple(str(number) for number in range(1, len(passages) + 1))
