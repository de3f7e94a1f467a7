"""One fold: ask the model piece by piece, let the gate judge, else take the turns' own sentences.

Knows no conversation, store or engine. Turns are not touched, so that nothing can be lost here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

import prompts
from chatbot.errors import ChatbotError
from chatbot.extractive import extractive_summary
from chatbot.facts import extract_facts, merge_facts
from chatbot.fold_plan import FoldBackoff, Piece, split_span
from chatbot.fold_prompt import summarise_messages, trim_to_cap
from chatbot.fold_types import FoldResult, FoldTools, ModelReply
from chatbot.language import Language
from chatbot.messages import Fact, RollingSummary, SummaryOrigin, Turn
from chatbot.summary_gate import Candidate, Source, judge, source_of, tidy

FACT_SHARE = 0.4
"""Most of the summary's cap that the fact list may take."""
MIN_ROOM_TOKENS = 48
"""With less room for the transcript than this, no model is asked."""
_SLACK_TOKENS = 4


@dataclass
class FoldRun:
    """One fold while it is being made; used once."""

    tools: FoldTools
    previous: RollingSummary | None
    turns: tuple[Turn, ...]
    language: Language
    backoff: FoldBackoff
    stop: Event | None
    text: str = ""
    done: int = 0
    calls: int = 0
    decisions: list[str] = field(default_factory=list)
    facts: tuple[Fact, ...] = ()
    cancelled: bool = False

    def run(self, max_calls: int) -> FoldResult | None:
        """Fold as far as `max_calls` model calls go; None if stopped or if nothing came out."""
        self.text = self.previous.text if self.previous else ""
        self.facts = self._facts_of(self.turns)
        accepted = False
        for piece in self._pieces(max_calls):
            if self.calls >= max_calls and self.done:
                break
            accepted = self._by_model(piece, max_calls)
            if not accepted or self._stopped():
                break
        if not accepted and not self._stopped():
            self._by_sentences()
        if self._stopped() or not (self.text or self.facts):
            return None
        return self._result("model" if accepted else "extractive")

    def _stopped(self) -> bool:
        return self.cancelled or (self.stop is not None and self.stop.is_set())

    def _facts_of(self, turns: Sequence[Turn]) -> tuple[Fact, ...]:
        """The facts carried so far and those of `turns`, within their share of the cap."""
        return merge_facts(
            self.previous.facts if self.previous else (),
            extract_facts(turns),
            cap_tokens=int(FACT_SHARE * self.tools.settings.cap_tokens),
            count_tokens=self.tools.count_tokens,
        )

    def _text_cap(self) -> int:
        """What the facts and the headings leave of the cap, so that all together stay within it."""
        lines = [prompts.load("label_summary", self.language)]
        if self.facts:
            lines.append(prompts.load("label_facts", self.language))
            lines += [f"- {fact.text}" for fact in self.facts]
        cap = self.tools.settings.cap_tokens
        return max(cap // 4, cap - self.tools.count_tokens("\n".join(lines)) - _SLACK_TOKENS)

    def _pieces(self, max_calls: int) -> list[Piece]:
        """What to put before the model, in order; nothing when it is not to be asked."""
        tools, settings = self.tools, self.tools.settings
        if settings.mode != "model" or tools.call_model is None or max_calls < 1:
            return []
        if not self.backoff.may_ask:
            self.decisions.append("model not asked: backing off after refusals")
            return []
        room = self._room_tokens(max_calls)
        if room < MIN_ROOM_TOKENS and max_calls > 1:
            # Too small for a summary that grows from piece to piece: one piece, the rest later.
            max_calls, room = 1, self._room_tokens(1)
        if room < MIN_ROOM_TOKENS:
            self.decisions.append(f"model not asked: {room} tokens of room for the conversation")
            return []
        pieces = split_span(
            self.turns, room_tokens=room, count_tokens=tools.count_tokens, language=self.language
        )
        return pieces if len(pieces) <= max_calls else self._in_whole_turns(pieces, room)

    def _room_tokens(self, max_calls: int) -> int:
        """Room for the transcript in a summary call, whichever of the two prompts is used."""
        count, cap = self.tools.count_tokens, self._text_cap()
        texts = (
            summarise_messages(
                self.text or ".", "", language=self.language, cap_tokens=cap, strict=strict
            )
            for strict in (False, True)
        )
        fixed = max(count(system) + count(user) for system, user in texts)
        # A summary that grows from piece to piece takes room from the later ones.
        growth = max(0, cap - count(self.text)) if max_calls > 1 else 0
        window = self.tools.settings.window_tokens - self.tools.settings.overhead_tokens
        return window - cap - fixed - growth - _SLACK_TOKENS

    def _in_whole_turns(self, pieces: Sequence[Piece], room: int) -> list[Piece]:
        """Where there are not enough calls for the parts of a long turn: its best sentences."""
        whole: list[Piece] = []
        done, partial = 0, False
        for piece in pieces:
            if piece.completes == 0:
                partial = True
                continue
            text = piece.transcript
            if partial:
                text = extractive_summary(
                    self.turns[done : done + piece.completes],
                    cap_tokens=room,
                    count_tokens=self.tools.count_tokens,
                    language=self.language,
                )
            if text:
                whole.append(Piece(text, piece.completes, self.tools.count_tokens(text)))
            done, partial = done + piece.completes, False
        return whole

    def _by_model(self, piece: Piece, max_calls: int) -> bool:
        """Ask once, and once more strictly if a call is left. Whether a summary was accepted."""
        source, cap = self._source(piece), self._text_cap()
        for strict in (False, True):
            if self.calls >= max_calls or self._stopped():
                return False
            system, user = summarise_messages(
                self.text, piece.transcript, language=self.language, cap_tokens=cap, strict=strict
            )
            candidate = self._ask(system, user, cap)
            if candidate is None:
                return False
            verdict = judge(candidate, source, cap_tokens=cap)
            if verdict.accepted:
                self.decisions.append("; ".join(("model summary accepted", *verdict.reasons)))
                self.text = candidate.text
                self.done += piece.completes
                return True
            self.decisions.append(f"model summary refused: {'; '.join(verdict.reasons)}")
        return False

    def _ask(self, system: str, user: str, cap: int) -> Candidate | None:
        """One call, tidied and trimmed; None when it failed or was stopped."""
        count, settings = self.tools.count_tokens, self.tools.settings
        needed = count(system) + count(user) + settings.overhead_tokens + cap
        if needed > settings.window_tokens or self.tools.call_model is None:
            self.decisions.append(f"model not asked: {needed} tokens do not fit its window")
            return None
        self.calls += 1
        try:
            reply = ModelReply(*self.tools.call_model(system, user, cap))
        except (ChatbotError, OSError, RuntimeError) as error:
            self.decisions.append(f"model call failed: {error}")
            return None
        self.cancelled = reply.finish == "cancelled"
        text = tidy(reply.text)
        tokens = count(text)
        if reply.finish == "length" or tokens > cap:
            whole = trim_to_cap(text, cap, count)
            if whole:
                return Candidate(whole, reply.finish, count(whole), trimmed=True)
        return Candidate(text, reply.finish, tokens)

    def _source(self, piece: Piece) -> Source:
        turns = self.turns[self.done : self.done + max(1, piece.completes)]
        before = RollingSummary(self.text, self.done, 0) if self.text else None
        return source_of(
            turns,
            before,
            language=self.language,
            count_tokens=self.tools.count_tokens,
            facts=[fact.text for fact in self.facts],
        )

    def _by_sentences(self) -> None:
        """Fold all that is left without the model."""
        self.text = extractive_summary(
            self.turns[self.done :],
            cap_tokens=self._text_cap(),
            count_tokens=self.tools.count_tokens,
            language=self.language,
            previous=self.text,
            embed=self.tools.embed,
        )
        self.done = len(self.turns)
        self.decisions.append("extractive summary")

    def _result(self, origin: SummaryOrigin) -> FoldResult:
        summary = RollingSummary(
            text=self.text,
            covers=(self.previous.covers if self.previous else 0) + self.done,
            tokens=self.tools.count_tokens(self.text),
            facts=self._facts_of(self.turns[: self.done]),
            origin=origin,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        backoff = self.backoff
        if self.tools.settings.mode == "model":
            backoff = backoff.after(asked=self.calls > 0, accepted=origin == "model")
        covered_all = self.done == len(self.turns)
        return FoldResult(summary, tuple(self.decisions), self.calls, backoff, covered_all)
