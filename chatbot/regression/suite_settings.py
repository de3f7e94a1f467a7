"""Settings that a suite asks for: names and values checked where they are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chatbot.errors import SettingsError
from chatbot.regression.faults import shown, unknown
from chatbot.regression.yaml_lines import Located, Place
from chatbot.setting_faults import impossible
from chatbot.settings import Settings

NOT_IN_SUITES = frozenset(
    {"data_dir", "cache_dir", "host", "port", "debug", "tokenizer"}
    | {"api", "api_key", "database_url", "vector_url", "engine_url", "engine_timeout_s"}
    | {"metrics_token", "log_format", "public_host"}
)
"""Each run has a data folder of its own, and where models lie is the machine's matter."""
_MACHINE = NOT_IN_SUITES | {"prompts_dir"}
_UNIMPORTANT_FOLDER = Path("unused")


def checked_settings(
    located: Located, place: Place, written: Mapping[str, Any], *, under: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """`written`, which lies over `under`, if it is possible. Raises SuiteError."""
    known = [name for name in Settings.model_fields if name not in _MACHINE]
    for key in written:
        if key in _MACHINE:
            raise located.fault((*place, key), f"{key} cannot be set by a suite; remove it.")
        if key not in known:
            raise located.fault((*place, key), unknown("setting", key, known))
    merged = {**under, **written}
    try:
        Settings(**merged, data_dir=_UNIMPORTANT_FOLDER)
    except ValidationError as error:
        raise located.fault(*_said(error, place, written)) from error
    return dict(written)


def _said(error: ValidationError, place: Place, written: Mapping[str, Any]) -> tuple[Place, str]:
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else ""
    return ((*place, key) if key in written else place), _plainly(error)


def _plainly(error: ValidationError) -> str:
    """Without a source: only what was written here or after --set can be wrong."""
    return impossible(error, Settings.model_fields, {}).replace(" (from defaults)", "")


def merged_settings(base: Settings, *layers: Mapping[str, Any]) -> Settings:
    """Settings with layers over them, the last wins. Raises SettingsError for what cannot be."""
    values = dict(base.model_dump())
    for layer in layers:
        values |= layer
    try:
        return Settings(**values)
    except ValidationError as error:
        raise SettingsError(_plainly(error)) from error


def parse_assignment(text: str) -> tuple[str, tuple[str, ...]]:
    """ "kv_cache_dtype=16bit,int8" to its name and values. Raises SettingsError."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not all(value.strip() for value in values.split(",")):
        raise SettingsError(f"--set takes NAME=VALUE,VALUE..., not {shown(text)}.")
    known = [key for key in Settings.model_fields if key not in NOT_IN_SUITES]
    if name not in known:
        raise SettingsError(f"--set: {unknown('setting', name, known)}")
    return name, tuple(value.strip() for value in values.split(","))
