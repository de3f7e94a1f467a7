"""How a reply in the making moves on: by its events, or by what is seen while none comes. Pure."""

from __future__ import annotations

from dataclasses import replace

from chatbot.chat import ChatEvent, ContextReady, NoticeEvent, Queued
from chatbot.engine.base import TextDelta
from chatbot.ui.view import LiveReply
from retrieval.embed import Embedder


def advanced(live: LiveReply, event: ChatEvent) -> LiveReply:
    """`live` after one more event; the last event changes nothing, the store is drawn then."""
    if isinstance(event, TextDelta):
        return replace(live, phase="writing", text=live.text + event.text)
    if isinstance(event, Queued):
        return replace(live, phase="waiting", position=event.position)
    if isinstance(event, ContextReady):
        return replace(live, phase="reading", trace=event.trace)
    if isinstance(event, NoticeEvent):
        return replace(live, notices=(*live.notices, event.notice))
    return live


def waiting_for(live: LiveReply, embedder: Embedder | None) -> LiveReply:
    """`live`, told that it waits for the embedding model if that is being fetched or loaded."""
    if live.phase not in ("waiting", "vectors") or live.position:
        return live
    # Only one that is loaded on demand can say so.
    is_loading = bool(getattr(embedder, "is_loading", False))
    return replace(live, phase="vectors" if is_loading else "waiting")
