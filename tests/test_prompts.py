"""Prompt texts: both languages complete, blanks checked, values never expanded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import prompts
from chatbot.errors import SettingsError
from chatbot.parts import use_prompts
from chatbot.settings import Settings
from prompts import PromptError, load, names, variables_of


def test_both_languages_hold_the_same_prompts_with_the_same_blanks() -> None:
    assert names("en") == names("ko")
    for name in names("en"):
        assert variables_of(name, "en") == variables_of(name, "ko"), name


def test_every_prompt_is_nonempty_and_short() -> None:
    for language in prompts.LANGUAGES:
        for name in names(language):
            blanks = dict.fromkeys(variables_of(name, language), "x")
            text = load(name, language, **blanks)
            assert text == text.strip() != ""
            assert len(text) < 500, (language, name)
    assert len(load("system", "en").split()) < 50


@pytest.mark.parametrize("value", ["{previous}", "{}", "{0}", "{{x}}", "}{", "%s $x \\n"])
def test_values_are_data(value: str) -> None:
    text = load("summarise_input", "en", transcript=value)
    assert value in text
    merged = load("summarise_merge_input", "ko", transcript=value, previous="{transcript}")
    assert value in merged
    assert "{transcript}" in merged


def test_missing_and_unknown_variables_are_refused_by_name() -> None:
    with pytest.raises(PromptError, match="transcript"):
        load("summarise_input", "en")
    with pytest.raises(PromptError, match="colour"):
        load("system", "en", colour="red")


@pytest.mark.parametrize("name", ["nothing", "../en/system", "", "en/system", "__init__"])
def test_unknown_prompt_is_one_sentence(name: str) -> None:
    with pytest.raises(PromptError) as caught:
        load(name, "en")
    assert "There is no prompt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_languages_get_english() -> None:
    assert load("label_summary", "fr") == load("label_summary", "en")
    assert load("label_summary", "other") != load("label_summary", "ko")


def test_damaged_prompt_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en").mkdir()
    for name, text in {"open": "a { b", "spec": "{x:>3}", "dotted": "{x.y}", "bare": "{}"}.items():
        (tmp_path / "en" / f"{name}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "en" / "bytes.txt").write_bytes(b"\xff\xfe\xfa")
    monkeypatch.setattr(prompts, "_FOLDER", tmp_path)
    prompts._parts.cache_clear()
    try:
        for name in ("open", "spec", "dotted", "bare", "bytes"):
            with pytest.raises(PromptError, match=rf"{name}\.txt"):
                load(name, "en", x=1)
    finally:
        prompts._parts.cache_clear()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "en").mkdir()
    yield tmp_path
    prompts.use_folder(None)


def test_own_texts_replace_the_built_in_ones_of_their_language_only(own: Path) -> None:
    (own / "en" / "label_facts.txt").write_text("What was said:\n", encoding="utf-8")
    korean = load("label_facts", "ko")
    prompts.use_folder(own)
    assert load("label_facts", "en") == "What was said:"
    assert load("label_facts", "ko") == korean
    assert load("label_summary", "en").startswith("Summary")
    prompts.use_folder(None)
    assert load("label_facts", "en") != "What was said:"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("summarise", "Sum it up.", "max_words"),
        ("label_facts", "Facts of {user}:", "these blanks: none"),
        ("lable_facts", "Facts:", "replaces none"),
    ],
)
def test_own_texts_that_do_not_fit_are_refused_and_change_nothing(
    own: Path, name: str, text: str, said: str
) -> None:
    (own / "en" / f"{name}.txt").write_text(text, encoding="utf-8")
    before = load("label_facts", "en")
    with pytest.raises(PromptError, match=said):
        prompts.use_folder(own)
    assert load("label_facts", "en") == before
    with pytest.raises(PromptError, match="not there"):
        prompts.use_folder(own / "nowhere")


def test_the_setting_takes_the_folder_and_says_what_is_wrong(own: Path) -> None:
    (own / "en" / "label_facts.txt").write_text("Noted:", encoding="utf-8")
    use_prompts(Settings(prompts_dir=own))
    assert load("label_facts", "en") == "Noted:"
    with pytest.raises(SettingsError, match="not there"):
        use_prompts(Settings(prompts_dir=own / "gone"))
