"""One fold: ask the model piece by piece, let the gate judge, else take the turns' own sentences.

Knows no conversation, store or engine. Turns are not touched, so that nothing can be lost here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

from chatbot.errors import ChatbotError
from chatbot.extractive import extractive_summary
from chatbot.facts import Found, merge_facts
from chatbot.fold_pieces import MIN_ROOM_TOKENS, pieces_of, room_tokens, text_cap
from chatbot.fold_plan import FoldBackoff, Piece
from chatbot.fold_prompt import summarise_messages, trim_to_cap
from chatbot.fold_types import FoldResult, FoldTools, ModelReply
from chatbot.language import Language
from chatbot.messages import Fact, FoldDecision, RollingSummary, SummaryOrigin, Turn
from chatbot.summary_gate import Candidate, Source, judge, source_of, tidy
from retrieval.types import RetrievalError

NOT_ASKED = "model not asked"
"""How the reason of a decision begins that no model had a part in."""
FACT_SHARE = 0.4
"""Most of the summary's cap that the fact list may take."""


@dataclass
class FoldRun:
    """One fold while it is being made; used once. `found` are the facts of all its turns."""

    tools: FoldTools
    previous: RollingSummary | None
    turns: tuple[Turn, ...]
    language: Language
    backoff: FoldBackoff
    stop: Event | None
    found: tuple[Found, ...] = ()
    kept: str = ""
    text: str = ""
    done: int = 0
    calls: int = 0
    decisions: list[FoldDecision] = field(default_factory=list)
    facts: tuple[Fact, ...] = ()
    refused: bool = False
    cancelled: bool = False

    def run(self, max_calls: int) -> FoldResult | None:
        """Fold as far as `max_calls` model calls go; None if stopped or if nothing came out."""
        self._begin()
        accepted = False
        for piece in self._pieces(max_calls):
            if self.calls >= max_calls and self.done:
                break
            accepted = self._by_model(piece, max_calls)
            if not accepted or self._stopped():
                break
        if self._stopped():
            return None
        if not accepted:
            if self._retry_due():
                return self._later()
            self._by_sentences()
        if self._stopped() or not (self.text or self.kept or self.facts):
            return None
        return self._result("model" if accepted else "extractive")

    def _begin(self) -> None:
        if self.previous is not None:
            self.kept = self.previous.kept
            self.text = self.previous.text.removeprefix(self.kept).strip()
        self.facts = self._facts_of(self.turns)

    def _stopped(self) -> bool:
        return self.cancelled or (self.stop is not None and self.stop.is_set())

    def _facts_of(self, turns: Sequence[Turn]) -> tuple[Fact, ...]:
        """The facts carried so far and those of `turns`, within their share of the cap."""
        ids = {turn.id for turn in turns}
        return merge_facts(
            self.previous.facts if self.previous else (),
            [found for found in self.found if found.fact.turn_id in ids],
            cap_tokens=int(FACT_SHARE * self.tools.settings.cap_tokens),
            count_tokens=self.tools.count_tokens,
            deleted=self.previous.deleted if self.previous else (),
        )

    def _text_cap(self) -> int:
        return text_cap(self.tools, self.facts, self.kept, self.language)

    def _pieces(self, max_calls: int) -> list[Piece]:
        """What to put before the model, in order; nothing when it is not to be asked."""
        settings = self.tools.settings
        if settings.mode != "model" or self.tools.call_model is None or max_calls < 1:
            return []
        if settings.spared:
            self._note(f"{NOT_ASKED}: {settings.spared}")
            return []
        if not self.backoff.may_ask:
            self._note(f"{NOT_ASKED}: backing off after refusals")
            return []
        room = self._room(grows=max_calls > 1)
        if room < MIN_ROOM_TOKENS and max_calls > 1:
            # Too small for a summary that grows from piece to piece: one piece, the rest later.
            max_calls, room = 1, self._room(grows=False)
        if room < MIN_ROOM_TOKENS:
            self._note(f"{NOT_ASKED}: {room} tokens of room for the conversation")
            return []
        return pieces_of(self.tools, self.turns, self.language, room=room, max_calls=max_calls)

    def _room(self, *, grows: bool) -> int:
        return room_tokens(
            self.tools, self.text, self.language, cap_tokens=self._text_cap(), grows=grows
        )

    def _by_model(self, piece: Piece, max_calls: int) -> bool:
        """Ask once, and once more strictly if a call is left. Whether a summary was accepted."""
        source, cap = self._source(piece), self._text_cap()
        for strict in (True,) if self.backoff.strict else (False, True):
            if self.calls >= max_calls or self._stopped():
                return False
            system, user = summarise_messages(
                self.text, piece.transcript, language=self.language, cap_tokens=cap, strict=strict
            )
            candidate = self._ask(system, user, cap)
            if candidate is None:
                return False
            verdict = judge(candidate, source, cap_tokens=cap)
            covered = self.done + piece.completes
            self._note(
                *(verdict.reasons or ("passed every check",)),
                accepted=verdict.accepted,
                candidate=candidate.text,
                done=covered,
            )
            if verdict.accepted:
                self.text, self.done, self.refused = candidate.text, covered, False
                return True
            self.refused = True
        return False

    def _ask(self, system: str, user: str, cap: int) -> Candidate | None:
        """One call, tidied and trimmed; None when it failed or was stopped."""
        count, settings = self.tools.count_tokens, self.tools.settings
        needed = count(system) + count(user) + settings.overhead_tokens + cap
        if needed > settings.window_tokens or self.tools.call_model is None:
            self._note(f"{NOT_ASKED}: {needed} tokens do not fit its window")
            return None
        self.calls += 1
        try:
            reply = ModelReply(*self.tools.call_model(system, user, cap))
        except (ChatbotError, OSError, RuntimeError, ValueError, MemoryError) as error:
            self._note(f"model call failed: {_told(error)}")
            self.refused = True
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
            changes=[(f.replaces.text, f.fact.text) for f in self.found if f.replaces],
        )

    def _by_sentences(self) -> None:
        """Fold all that is left without the model. What was corrected is not said once more."""
        reason = "sentences of the turns themselves"
        values = {
            "turns": self.turns[self.done :],
            "cap_tokens": self._text_cap(),
            "count_tokens": self.tools.count_tokens,
            "language": self.language,
            "previous": self.text,
            "outdated": [found.replaces.text for found in self.found if found.replaces],
        }
        try:
            self.text = extractive_summary(**values, embed=self.tools.embed)  # type: ignore[arg-type]
        except (RetrievalError, MemoryError) as error:
            self.text = extractive_summary(**values)  # type: ignore[arg-type]
            reason = f"{reason}; compared by words only: {_told(error)}"
        self.done = len(self.turns)
        self._note(reason, accepted=True, origin="extractive")

    def _retry_due(self) -> bool:
        """Whether the retry with the stricter prompt comes first, at the next opportunity."""
        return self.refused and self.calls == 1 and not self.backoff.strict and not self.done

    def _note(
        self,
        *reasons: str,
        accepted: bool = False,
        origin: SummaryOrigin | None = None,
        candidate: str = "",
        done: int | None = None,
    ) -> None:
        covers = (self.previous.covers if self.previous else 0) + (done or self.done)
        origin = origin or ("model" if accepted else None)
        self.decisions.append(FoldDecision(_now(), covers, accepted, origin, reasons, candidate))

    def _later(self) -> FoldResult:
        """Nothing changes; the next fold asks once more."""
        backoff = self.backoff.after(asked=True, accepted=False, final=False)
        return FoldResult(None, tuple(self.decisions), self.calls, backoff, covered_all=False)

    def _result(self, origin: SummaryOrigin) -> FoldResult:
        text = "\n\n".join(part for part in (self.kept, self.text) if part)
        summary = RollingSummary(
            text=text,
            covers=(self.previous.covers if self.previous else 0) + self.done,
            tokens=self.tools.count_tokens(text),
            facts=self._facts_of(self.turns[: self.done]),
            origin=origin,
            created=_now(),
            kept=self.kept,
            deleted=self.previous.deleted if self.previous else (),
        )
        backoff = self.backoff
        if self.tools.settings.mode == "model":
            backoff = backoff.after(asked=self.calls > 0, accepted=origin == "model")
        covered_all = self.done == len(self.turns)
        return FoldResult(summary, tuple(self.decisions), self.calls, backoff, covered_all)


def _told(error: Exception) -> str:
    """What an error says; a bare MemoryError says nothing of its own accord."""
    return str(error) or ("out of memory" if isinstance(error, MemoryError) else repr(error))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
