"""Chat formats out of templates: the ids equal the template's, and come apart exactly."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
import pytest
import toy_tokenizers as toys
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from chatbot.engine.base import ChatTokenizer
from chatbot.engine.chat_format import assemble_ids
from chatbot.engine.chat_template import FIXED_DATE, TemplateUnusableError, control_texts
from chatbot.engine.tokenizers import load_tokenizer

LLAMA3_CONFIG = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
GEMMA_CONFIG = {"bos_token": "<bos>", "eos_token": "<eos>"}
MISTRAL_CONFIG = {"bos_token": "<s>", "eos_token": "</s>"}
MISTRAL_TOKENS = ("<unk>", "<s>", "</s>", "[INST]", "[/INST]")
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "chatml": (toys.CHATML, toys.byte_level_json(toys.CHATML_TOKENS), {}),
    "default system": (toys.CHATML_DEFAULT_SYSTEM, toys.byte_level_json(toys.CHATML_TOKENS), {}),
    "thinking": (toys.CHATML_THINKING, toys.byte_level_json(toys.CHATML_TOKENS), {}),
    "llama 3": (toys.LLAMA3, toys.byte_level_json(toys.LLAMA3_TOKENS), LLAMA3_CONFIG),
    "llama 3.1": (toys.LLAMA31, toys.byte_level_json(toys.LLAMA3_TOKENS), LLAMA3_CONFIG),
    "gemma": (toys.GEMMA, toys.byte_level_json(toys.GEMMA_TOKENS), GEMMA_CONFIG),
    "drops system": (toys.DROPS_SYSTEM, toys.byte_level_json(toys.GEMMA_TOKENS), GEMMA_CONFIG),
    "mistral": (toys.MISTRAL, toys.byte_level_json(MISTRAL_TOKENS), MISTRAL_CONFIG),
    "system in last": (toys.SYSTEM_IN_LAST, toys.byte_level_json(MISTRAL_TOKENS), MISTRAL_CONFIG),
}
WITHOUT_SYSTEM = {"gemma", "drops system", "mistral", "system in last"}
SYSTEM = "Answer briefly. 짧게 답하세요."
TURNS = (("When does it open?", "At nine."), ("언제 닫나요?", "여섯 시에 닫습니다."))
QUESTION = "And on Sundays 👩‍👩‍👧?"


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def load(family: str, folder: Path) -> ChatTokenizer:
    template, tokenizer_json, config = FAMILIES[family]
    return load_tokenizer(
        toys.model_folder(folder / "m", tokenizer_json, template=template, config=config)
    )


def assemble(tokenizer: ChatTokenizer, turns: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    encode = tokenizer.encode
    pairs = [(encode(asked), encode(answered)) for asked, answered in turns]
    return assemble_ids(tokenizer.chat_format, encode(SYSTEM), pairs, encode(QUESTION))


def rendered_whole(family: str, turns: tuple[tuple[str, str], ...]) -> list[int]:
    """The same chat as the template's makers render it: one text, tokenised whole."""
    template, tokenizer_json, config = FAMILIES[family]
    messages = [{"role": "system", "content": SYSTEM}]
    for asked, answered in turns:
        messages.append({"role": "user", "content": asked})
        messages.append({"role": "assistant", "content": answered})
    messages.append({"role": "user", "content": QUESTION})
    if family in WITHOUT_SYSTEM:
        messages[1]["content"] = SYSTEM + "\n\n" + messages[1]["content"]
        del messages[0]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    text = environment.from_string(template).render(
        messages=messages,
        add_generation_prompt=True,
        enable_thinking=False,
        date_string=FIXED_DATE.strftime("%d %b %Y"),
        raise_exception=lambda message: pytest.fail(message),
        **config,
    )
    ids: list[int] = Tokenizer.from_str(tokenizer_json).encode(text, add_special_tokens=False).ids
    return ids


def test_ids_are_the_templates_own(family: str, tmp_path: Path) -> None:
    tokenizer = load(family, tmp_path)
    assert tokenizer.format_warning is None  # type: ignore[attr-defined]
    assert tokenizer.chat_format.has_system_role == (family not in WITHOUT_SYSTEM)
    for turns in ((), TURNS[:1], TURNS):
        ours = assemble(tokenizer, turns)
        theirs = rendered_whole(family, turns)
        if family in WITHOUT_SYSTEM or family in ("mistral", "system in last"):
            # A seam between two texts may be tokenised otherwise; the text is the same.
            shown = Tokenizer.from_str(FAMILIES[family][1])
            assert shown.decode(list(ours), skip_special_tokens=False) == shown.decode(
                theirs, skip_special_tokens=False
            )
            control = tokenizer.control_ids
            assert [i for i in ours if i in control] == [i for i in theirs if i in control]
        else:
            assert list(ours) == theirs


@pytest.mark.parametrize("family", [f for f in FAMILIES if "bos_token" in FAMILIES[f][2]])
def test_begin_token_exactly_once(family: str, tmp_path: Path) -> None:
    tokenizer = load(family, tmp_path)
    bos_id = Tokenizer.from_str(FAMILIES[family][1]).token_to_id(FAMILIES[family][2]["bos_token"])
    ids = assemble(tokenizer, TURNS)
    assert (ids[0], ids.count(bos_id)) == (bos_id, 1)


def test_an_empty_reply_keeps_roles_alternating(family: str, tmp_path: Path) -> None:
    tokenizer = load(family, tmp_path)
    full = assemble(tokenizer, TURNS)
    empty = assemble(tokenizer, ((TURNS[0][0], ""), TURNS[1]))
    control = tokenizer.control_ids
    assert [i for i in full if i in control] == [i for i in empty if i in control]
    reply = tokenizer.encode(TURNS[0][1])
    assert len(full) - len(empty) == len(reply)


def test_every_end_token_stops_a_reply(tmp_path: Path) -> None:
    llama = toys.model_folder(
        tmp_path / "l",
        toys.byte_level_json(toys.LLAMA3_TOKENS),
        template=toys.LLAMA3,
        config=LLAMA3_CONFIG,
    )
    names = Tokenizer.from_file(str(llama / "tokenizer.json"))
    stops = load_tokenizer(llama).chat_format.stop_ids
    assert {names.token_to_id(t) for t in ("<|eot_id|>", "<|end_of_text|>")} <= stops
    # Also the one that no file names: base models end texts with it.
    bare = toys.model_folder(
        tmp_path / "b", toys.byte_level_json(toys.LLAMA3_TOKENS), template=toys.LLAMA3
    )
    assert names.token_to_id("<|end_of_text|>") in load_tokenizer(bare).chat_format.stop_ids
    for generation, given, expected in (
        ({"eos_token_id": 300}, None, {300}),
        ({"eos_token_id": [300, 301]}, 302, {300, 301, 302}),
        ({"eos_token_id": None}, [303, 304], {303, 304}),
    ):
        toys.model_folder(llama, toys.byte_level_json(toys.LLAMA3_TOKENS), generation=generation)
        assert expected <= load_tokenizer(llama, end_ids=given).chat_format.stop_ids
    gemma = load("gemma", tmp_path)
    ends = Tokenizer.from_str(FAMILIES["gemma"][1])
    assert {ends.token_to_id(t) for t in ("<end_of_turn>", "<eos>")} <= gemma.chat_format.stop_ids


def test_date_never_changes() -> None:
    """The front of the prompt must be the same tomorrow, or every cache is lost."""
    fixed = FIXED_DATE.strftime("%d %b %Y")
    assert fixed != datetime.now().strftime("%d %b %Y")
    for template in (toys.LLAMA31, toys.NOW):
        assert f"Today Date: {fixed}\n\n" in control_texts(template, LLAMA3_CONFIG).begin


def test_variants_of_the_same_template_give_the_same_texts() -> None:
    plain = control_texts(toys.CHATML, {})
    for template in (
        toys.CHATML_DEFAULT_SYSTEM,
        toys.CHATML_NO_PROMPT,
        toys.CHATML_PARTS,
        toys.CHATML_GENERATION,
    ):
        assert control_texts(template, {}) == plain
    thinking = control_texts(toys.CHATML_THINKING, {})
    assert thinking.end == plain.end + "<think>\n\n</think>\n\n"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for m in messages %}{{ m.content", "not a valid template"),
        ("{{ raise_exception('no chat') }}", "refuses a plain chat"),
        ("{{ messages[0].nothing.more }}", "refuses a plain chat"),
        ("{{ messages[-1].content }}", "exactly once"),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", "exactly once"),
        ("{% for m in messages %}{{ loop.index }}{{ m.content }}{% endfor %}", "later turns"),
        ("{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}", "first turn"),
        ("{{ ''.__class__.__mro__ }}", "refuses a plain chat"),
        ("{{ messages.append(1) }}", "refuses a plain chat"),
    ],
)
def test_unusable_templates_say_why(template: str, reason: str) -> None:
    with pytest.raises(TemplateUnusableError, match=reason):
        control_texts(template, {})


@pytest.mark.parametrize(
    ("special", "used"),
    [
        (toys.LLAMA3_TOKENS, "Llama 3"),
        (toys.CHATML_TOKENS, "ChatML"),
        (("<s>", "</s>"), '"User:"'),
    ],
)
@pytest.mark.parametrize("template", [None, "{{ raise_exception('no') }}"])
def test_without_a_usable_template_the_format_is_a_guess_and_says_so(
    special: tuple[str, ...], used: str, template: str | None, tmp_path: Path
) -> None:
    folder = toys.model_folder(tmp_path, toys.byte_level_json(special), template=template)
    tokenizer = load_tokenizer(folder)
    warning = tokenizer.format_warning  # type: ignore[attr-defined]
    assert used in warning
    assert ("cannot be used" in warning) == (template is not None)
    assert tokenizer.chat_format.end


def test_jinja_errors_do_not_leak() -> None:
    assert not issubclass(TemplateUnusableError, jinja2.TemplateError)
