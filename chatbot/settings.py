"""Every knob once: defaults < chatbot.toml < environment (CHATBOT_*) < flags.

One frozen object, built at the edge. Unknown keys and impossible values are refused by name.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from chatbot.errors import SettingsError
from chatbot.saved_settings import FILE, read_saved
from chatbot.setting_faults import impossible
from chatbot.settings_model import ModelSettings
from chatbot.settings_team import TeamSettings

ENV_PREFIX = "CHATBOT_"


def default_data_dir() -> Path:
    """Where conversations and documents live unless told otherwise."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "local-llama-chat"


def default_cache_dir() -> Path:
    """Where downloaded and converted models live; safe to delete."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "local-llama-chat"


class Settings(TeamSettings, ModelSettings):
    """All settings, validated. `Settings()` is the default configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Reply
    reply_tokens: int = Field(
        0,
        ge=0,
        le=32768,
        description="most tokens of one reply; 0: a quarter of the window, at most 512",
    )
    temperature: float = Field(0.0, ge=0.0, le=2.0, description="0 is greedy, repeatable")
    top_p: float = Field(
        1.0, ge=0.0, le=1.0, description="sample from the likeliest tokens of this total share"
    )
    repetition_penalty: float = Field(
        1.1, ge=0.5, le=2.0, description="on tokens that the reply holds already; 1 is none"
    )
    seed: int | None = Field(None, ge=0, description="makes sampled replies repeatable")
    stop: tuple[str, ...] = Field((), description="texts that end a reply")
    system_prompt: str | None = Field(None, description="replaces the built-in system text")

    # Memory
    summary: Literal["off", "extractive", "model"] = Field(
        "model", description="how old turns are folded"
    )
    summary_language: Literal["auto", "en", "ko"] = Field(
        "auto", description="language of summaries; auto: that of the conversation"
    )
    summary_tokens: int = Field(256, ge=16, le=4096, description="cap of the rolling summary")
    fold_high: float = Field(
        0.5, gt=0.0, le=1.0, description="fold when recent turns exceed this share of the window"
    )
    fold_low: float = Field(
        0.25, ge=0.0, lt=1.0, description="fold down to this share of the window"
    )
    fold_turns: int = Field(
        8, ge=1, le=1000, description="turns that a fold takes at least, where there are so many"
    )
    min_recent_turns: int = Field(
        2, ge=0, le=100, description="newest turns that have first claim on the budget"
    )
    recall_share: float = Field(
        0.25, ge=0.0, le=1.0, description="most of the prompt that recalled old turns may take"
    )
    recall_share_asked: float = Field(
        0.4,
        ge=0.0,
        le=1.0,
        description="the same for a question that asks for what was said before",
    )
    recall_vectors: Literal["auto", "off"] = Field(
        "auto",
        description="auto: old turns are found by meaning as well, with --embedding-model; off: "
        "by their words only",
    )

    # Documents
    passage_share: float = Field(
        0.5, ge=0.0, le=1.0, description="most of the prompt that passages may take"
    )
    top_k: int = Field(20, ge=1, le=200, description="passages considered for a question")
    chunk_min_tokens: int = Field(300, ge=1, le=4000, description="lower aim of a chunk")
    chunk_max_tokens: int = Field(500, ge=8, le=8000, description="hard limit of a chunk")
    embedding_model: str = Field(
        "embedded",
        description="embedded (all-MiniLM-L6-v2, English), none, or a sentence-transformers name "
        "or folder such as intfloat/multilingual-e5-small",
    )
    reranker_model: str = Field(
        "none",
        description="none, or a sentence-transformers cross-encoder that reads the best passages "
        "again with the question, such as BAAI/bge-reranker-v2-m3; slow on a CPU",
    )
    keep_running_lines: bool = Field(
        False, description="keep running headers, footers and page numbers of PDF files"
    )
    max_upload_mb: int = Field(50, ge=1, le=4096, description="largest file accepted, in MiB")
    parser_timeout_s: float = Field(60.0, gt=0, le=3600, description="time limit for one file")
    parser_memory_mb: int = Field(
        2048, ge=64, le=65536, description="memory limit for reading one file, in MiB"
    )

    # Program
    prompts_dir: Path | None = Field(
        None,
        description="own prompt texts, en/NAME.txt and ko/NAME.txt, in place of those in prompts/",
    )
    data_dir: Path = Field(
        default_factory=default_data_dir, description="conversations and documents"
    )
    cache_dir: Path = Field(default_factory=default_cache_dir, description="models; may be deleted")
    host: str = Field("127.0.0.1", description="address of the page")
    port: int = Field(7860, ge=0, le=65535, description="port of the page; 0 takes a free one")
    auth: Path | None = Field(
        None,
        description="file of users and hashed passwords, made by 'user add'; needed with a --host "
        "that others can reach",
    )
    behind_proxy: bool = Field(
        False, description="believe the X-Forwarded headers, which a proxy of your own sets"
    )
    language: Literal["auto", "en", "ko"] = Field("auto", description="language of the page")
    debug: bool = Field(False, description="show tracebacks")

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.fold_low >= self.fold_high:
            message = "fold_low must be below fold_high"
            raise ValueError(message)
        if self.chunk_min_tokens > self.chunk_max_tokens:
            message = "chunk_min_tokens must not exceed chunk_max_tokens"
            raise ValueError(message)
        if self.window_tokens and self.window_tokens < 64:
            message = "window_tokens must be 0 or at least 64"
            raise ValueError(message)
        return self


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    toml_path: Path | None = None,
) -> Settings:
    """Merge all sources. `toml_path` None reads chatbot.toml in the working directory, if any.

    What was changed on the page counts least. Raises SettingsError that names the key, its
    source and what is allowed.
    """
    environ = os.environ if environ is None else environ
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, values in (
        _from_toml(toml_path),
        ("the environment", _from_environ(environ)),
        ("the command line", {k: v for k, v in (flags or {}).items() if v is not None}),
    ):
        for key, value in values.items():
            if key not in Settings.model_fields:
                raise SettingsError(_unknown(key, source))
            merged[key] = value
            sources[key] = source
    data_dir = Path(str(merged.get("data_dir") or default_data_dir()))
    for key, value in read_saved(data_dir).items():
        if key in Settings.model_fields and key not in merged:
            merged[key] = value
            sources[key] = str(data_dir / FILE)
    try:
        return Settings(**merged)
    except ValidationError as error:
        raise SettingsError(impossible(error, Settings.model_fields, sources)) from error


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add one flag for each setting, with its description and default."""
    group = parser.add_argument_group("settings")
    for name, field in Settings.model_fields.items():
        flag = "--" + name.replace("_", "-")
        text = f"{field.description} (default: {_shown_default(field)})".replace("%", "%%")
        if field.annotation is bool:
            group.add_argument(flag, action="store_true", default=None, help=text)
        elif name == "stop":
            group.add_argument(flag, action="append", metavar="TEXT", default=None, help=text)
        else:
            choices = get_args(field.annotation)
            literal = choices and all(isinstance(choice, str) for choice in choices)
            metavar = "{" + ",".join(choices) + "}" if literal else name.split("_")[-1].upper()
            group.add_argument(flag, metavar=metavar, default=None, help=text)


def flags_of(namespace: argparse.Namespace) -> dict[str, Any]:
    """The settings among parsed arguments that were given on the command line."""
    return {
        name: getattr(namespace, name)
        for name in Settings.model_fields
        if getattr(namespace, name, None) is not None
    }


def _from_toml(path: Path | None) -> tuple[str, dict[str, Any]]:
    chosen = path or Path("chatbot.toml")
    source = str(chosen)
    if path is None and not chosen.is_file():
        return source, {}
    try:
        return source, tomllib.loads(chosen.read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = f"The settings file {source} cannot be read: {error.strerror}."
        raise SettingsError(message) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The settings file {source} is not valid TOML: {error}; texts stand in quotes, as in "
            'model = "demo".'
        ) from error


def _from_environ(environ: Mapping[str, str]) -> dict[str, str | tuple[str, ...]]:
    found: dict[str, str | tuple[str, ...]] = {}
    for key, value in environ.items():
        if key.startswith(ENV_PREFIX) and value != "":
            name = key.removeprefix(ENV_PREFIX).lower()
            found[name] = (value,) if name == "stop" else value
    return found


def _unknown(key: str, source: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, Settings.model_fields, n=1)
    hint = f" Did you mean {near[0]}?" if near else " See --help for all settings."
    return f"Unknown setting {key!r} in {source}.{hint}"


def _shown_default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    return "none" if value is None or value == () else str(value)
