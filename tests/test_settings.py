"""Settings: who wins over whom, and how wrong keys and values are refused."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from chatbot.errors import SettingsError
from chatbot.settings import Settings, add_flags, flags_of, load_settings


def parsed(*arguments: str) -> dict[str, object]:
    """What the flags of a command line amount to."""
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return flags_of(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("toml", "environ", "flags", "expected"),
    [
        pytest.param(None, {}, (), 7860, id="default"),
        pytest.param("port = 1001", {}, (), 1001, id="file_over_default"),
        pytest.param("port = 1001", {"CHATBOT_PORT": "1002"}, (), 1002, id="environment_over_file"),
        pytest.param(
            "port = 1001",
            {"CHATBOT_PORT": "1002"},
            ("--port", "1003"),
            1003,
            id="flag_over_environment",
        ),
        pytest.param("port = 1001", {}, ("--port", "0"), 0, id="a_flag_of_zero_counts"),
    ],
)
def test_later_sources_win(
    toml: str | None,
    environ: dict[str, str],
    flags: tuple[str, ...],
    expected: int,
    tmp_path: Path,
) -> None:
    path = None
    if toml is not None:
        path = tmp_path / "given.toml"
        path.write_text(toml, encoding="utf-8")
    assert load_settings(parsed(*flags), environ=environ, toml_path=path).port == expected


def test_the_file_in_the_working_folder_is_read() -> None:
    Path("chatbot.toml").write_text("reply_tokens = 77\n", encoding="utf-8")
    assert load_settings(environ={}).reply_tokens == 77


@pytest.mark.parametrize(
    ("toml", "environ", "flags", "named"),
    [
        pytest.param("prot = 1", {}, {}, ("prot", "chatbot.toml"), id="file"),
        pytest.param("", {"CHATBOT_PROT": "1"}, {}, ("prot", "environment"), id="environment"),
        pytest.param("", {}, {"prot": 1}, ("prot", "command line"), id="command_line"),
    ],
)
def test_an_unknown_key_is_refused_by_name_and_source(
    toml: str, environ: dict[str, str], flags: dict[str, object], named: tuple[str, str]
) -> None:
    Path("chatbot.toml").write_text(toml, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(flags, environ=environ)
    for word in named:
        assert word in str(caught.value).lower()


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        pytest.param(("--port", "70000"), "port", id="too_large"),
        pytest.param(("--port", "http"), "port", id="no_number"),
        pytest.param(("--quantization", "int3"), "quantization", id="not_among_the_choices"),
        pytest.param(("--fold-high", "0.2", "--fold-low", "0.3"), "fold_low", id="contradiction"),
        pytest.param(("--window-tokens", "63"), "window_tokens", id="too_small_a_window"),
        pytest.param(("--chunk-min-tokens", "600"), "chunk_min_tokens", id="chunk_bounds"),
    ],
)
def test_an_impossible_value_is_refused_by_name_in_one_line(
    flags: tuple[str, ...], named: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(parsed(*flags), environ={})
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("temperature", "hot", "temperature must be a number from 0 to 2, not 'hot'"),
        ("port", "70000", "port must be a whole number from 0 to 65535, not '70000'"),
        ("seed", "x", "seed must be a whole number at least 0, not 'x'"),
        ("fold_high", "0", "fold_high must be a number above 0 and at most 1, not '0'"),
        ("window_tokens", "x", "window_tokens must be a whole number from 0 to 1000000, not 'x'"),
        ("summary", "no", "summary must be off, extractive or model, not 'no'"),
        ("debug", "maybe", "debug must be true or false, not 'maybe'"),
        ("kv_cache_bytes", "x", "kv_cache_bytes must be an amount of memory such as 2GiB, not 'x'"),
        ("model", 4, "model must be a text, not 4"),
        ("system_prompt", 4, "system_prompt must be a text, not 4"),
        ("data_dir", 4, "data_dir must be the path of a folder, not 4"),
        ("stop", 4, "stop must be a list of texts, not 4"),
    ],
)
def test_an_impossible_value_is_explained_in_plain_words(
    key: str, value: object, sentence: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({key: value}, environ={})
    assert str(caught.value) == f"{sentence} (from the command line)."


def test_a_damaged_file_is_named() -> None:
    Path("chatbot.toml").write_text("port = = 1", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"chatbot\.toml"):
        load_settings(environ={})


def test_a_boolean_and_a_list_can_come_from_every_source() -> None:
    assert load_settings(parsed("--debug", "--stop", "A", "--stop", "B"), environ={}) == Settings(
        debug=True, stop=("A", "B")
    )
    assert load_settings({}, environ={"CHATBOT_DEBUG": "true"}).debug


def test_help_explains_every_setting_with_its_default() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    text = " ".join(parser.format_help().split())
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')}" in text
        assert field.description, f"{name} has no description"
        assert field.description.split()[0] in text


def test_settings_cannot_be_changed_later() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]
