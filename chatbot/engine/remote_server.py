"""What a server is, which model it has, and how long its context is. Sends no prompt of anybody's.

Everything is read: from the list of models, or from the addresses that each kind of server has.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chatbot.engine.remote_client import RemoteClient
from chatbot.errors import ServerBusyError, UnknownModelError

ServerKind = Literal[
    "vLLM", "SGLang", "llama.cpp", "llama-cpp-python", "Ollama",
    "Text Generation Inference", "transformers", "OpenAI", "OpenAI-compatible server",
]  # fmt: skip
DEFAULT_MODEL = "demo"
_OWNERS: dict[str, ServerKind] = {
    "vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp", "library": "Ollama",
}  # fmt: skip
_CONTEXT_KEYS = ("max_model_len", "context_length", "max_context_length", "context_window")
_LISTED_MODELS = 8


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server and the model that it is asked for."""

    kind: ServerKind
    model: str
    root: str | None = None
    """The name under which the model's files are known, where it is another."""
    context_tokens: int = 0
    """Longest prompt and reply together; 0: the server does not tell."""


def look_at(client: RemoteClient, wanted: str) -> ServerFacts:
    """Ask a server what it is. `wanted` is the model; DEFAULT_MODEL takes the only one.

    Raises RemoteError: nobody answers, the key is wrong, the model is not there or still loads.
    """
    models = client.models()
    entry = _chosen(models, wanted, client.shown)
    kind = _kind(client, entry)
    model = str(entry["id"])
    root = entry.get("root")
    return ServerFacts(
        kind, model, root if isinstance(root, str) else None, _context(client, kind, entry)
    )


def _chosen(models: list[dict[str, Any]], wanted: str, server: str) -> dict[str, Any]:
    names = [str(model.get("id")) for model in models]
    if wanted == DEFAULT_MODEL and wanted not in names:
        if len(models) == 1:
            return models[0]
        if models:
            raise UnknownModelError(
                f"The server {server} has several models; set --model to one: {_listed(names)}."
            )
        raise UnknownModelError(f"The server {server} lists no model; set --model to its name.")
    for model, name in zip(models, names, strict=True):
        if wanted in (name, f"{name}:latest") or name == f"{wanted}:latest":
            return model
    if not models:  # some servers list none, or only what was downloaded
        return {"id": wanted}
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it has: {_listed(names)}."
    raise UnknownModelError(f"The server {server} does not have the model {wanted}; {hint}")


def _listed(names: list[str]) -> str:
    more = "" if len(names) <= _LISTED_MODELS else f" and {len(names) - _LISTED_MODELS} more"
    return ", ".join(names[:_LISTED_MODELS]) + more


def _kind(client: RemoteClient, entry: Mapping[str, Any]) -> ServerKind:
    if "api.openai.com" in client.base_url:
        return "OpenAI"
    known = _OWNERS.get(str(entry.get("owned_by")))
    if known is not None:
        return known
    if "default_generation_settings" in (client.ask("/props") or {}):
        return "llama.cpp"
    if "version" in (client.ask("/api/version") or {}):
        return "Ollama"
    if "max_total_tokens" in (client.ask("/info") or {}):
        return "Text Generation Inference"
    if "count" in (client.ask("/extras/tokenize/count", {"input": "a"}) or {}):
        return "llama-cpp-python"
    if "tokens" in (client.ask("/tokenize", {"model": entry.get("id"), "prompt": "a"}) or {}):
        return "vLLM"
    if "status" in entry and (client.ask("/health") or {}).get("status") == "ok":
        return "transformers"
    return "OpenAI-compatible server"


def _context(client: RemoteClient, kind: ServerKind, entry: Mapping[str, Any]) -> int:
    for key in _CONTEXT_KEYS:
        if _is_length(entry.get(key)):
            return int(entry[key])
    if kind == "llama.cpp":
        props = client.ask("/props")
        if props is None and client.is_loading():  # it lists its model before
            raise ServerBusyError(f"The server {client.shown} still loads its model; ask later.")
        props = props or {}
        settings = _fields(props.get("default_generation_settings"))
        return _length(settings.get("n_ctx") or props.get("n_ctx"))
    if kind == "SGLang":
        info = client.ask("/get_server_info") or {}
        return _length(info.get("context_length") or info.get("max_total_num_tokens"))
    if kind == "Text Generation Inference":
        return _length((client.ask("/info") or {}).get("max_total_tokens"))
    if kind == "Ollama":
        return _ollama_context(client, str(entry["id"]))
    return 0


def _ollama_context(client: RemoteClient, model: str) -> int:
    """What Ollama runs the model with. The model's own length would be wrong: Ollama cuts prompts
    silently at a length that the model's file, or the server's environment, sets."""
    client.ask("/api/generate", {"model": model})  # loads it, so that it is listed
    listed = (client.ask("/api/ps") or {}).get("models")
    for running in map(_fields, listed if isinstance(listed, list) else []):
        if model in (running.get("name"), running.get("model")):
            found = _length(running.get("context_length"))
            if found:
                return found
    shown = client.ask("/api/show", {"model": model}) or {}
    named = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    return int(named[1]) if named else 0


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _length(value: Any) -> int:
    return int(value) if _is_length(value) else 0


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
