"""Mistakes in suites: each ends with exit 2 and one sentence that names file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli import inside

CASE = "version: 1\ncases:\n  - id: a\n    why: It must.\n"
TURN = "    turns:\n      - user: hi\n"
ASSERT = CASE + TURN + "        assert:\n          - "
BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
)

# name: (text of the suite, line that is named, words of the sentence)
MISTAKES: dict[str, tuple[str | bytes, int, str]] = {
    "typo_in_an_assertion": (ASSERT + "contians: x", 8, "did you mean contains?"),
    "typo_in_a_negated_one": (ASSERT + "not-contians: x", 8, "did you mean not-contains?"),
    "typo_in_a_key": (CASE + "    turnss: []\n" + TURN, 5, "did you mean turns?"),
    "typo_in_a_turn": (CASE + TURN + "        asert: []", 7, "did you mean assert?"),
    "typo_in_the_defaults": ("version: 1\ndefaults:\n  sample: 1\ncases: []", 3, "samples?"),
    "wrong_type": (CASE + "    samples: many\n" + TURN, 5, "a whole number"),
    "text_that_is_a_number": (CASE + "    turns:\n      - user: 12\n", 6, "put it in quotes"),
    "tab": (CASE + "\tturns: []\n", 5, "indent with spaces"),
    "not_yaml": (CASE + "    turns: [\n", 6, "not valid YAML"),
    "duplicate_key": (CASE + TURN + TURN, 7, "twice"),
    "duplicate_id": (CASE + TURN + "  - id: a\n    why: It must.\n" + TURN, 7, "already"),
    "missing_why": ("version: 1\ncases:\n  - id: a\n" + TURN, 3, "'why' is missing"),
    "blank_why": ("version: 1\ncases:\n  - id: a\n    why: ' '\n" + TURN, 4, "why must be"),
    "missing_file": (CASE + "    documents: [none.txt]\n" + TURN, 5, "no file 'none.txt'"),
    "missing_history": (CASE + "    history: none.json\n" + TURN, 5, "no file 'none.json'"),
    "outside_the_folder": (CASE + "    documents: [../out.txt]\n" + TURN, 5, "outside"),
    "absolute_path": (CASE + "    documents: [/etc/passwd]\n" + TURN, 5, "outside"),
    "link_out_of_the_folder": (CASE + "    documents: [link.txt]\n" + TURN, 5, "outside"),
    "includes_itself": ("version: 1\ninclude: [suite.yaml]\n", 2, "includes itself"),
    "cyclic_include": ("version: 1\ninclude: [other.yaml]\n", 2, "includes itself"),
    "fault_in_an_included_file": ("version: 1\ninclude: [bad.yaml]\n", 3, "bad.yaml"),
    "pattern_of_10_mb": (ASSERT + "regex: " + "a" * (10 << 20), 1, "2 MiB"),
    "long_pattern": (ASSERT + "regex: " + "a" * 5000, 8, "5000 characters"),
    "catastrophic_pattern": (ASSERT + "regex: '(a|aa)+$'", 8, "too long"),
    "broken_pattern": (ASSERT + "regex: '('", 8, "not valid"),
    "empty_file": ("", 1, "empty"),
    "no_mapping": ("- a\n- b\n", 1, "mapping"),
    "not_utf_8": (CASE.encode() + b"    tags: [\xff]\n" + TURN.encode(), 5, "UTF-8"),
    "control_character": (CASE + "    tags: ['\x00']\n" + TURN, 5, "does not allow"),
    "alias_bomb": (BOMB, 1, "too many values"),
    "object_of_python": (CASE + "    tags: !!python/name:os.system\n" + TURN, 5, "quotes"),
    "too_deep": (CASE + "    tags: " + "[" * 500 + "]" * 500 + "\n" + TURN, 5, "too deeply"),
    "no_version": ("cases: []\n", 1, "version"),
    "wrong_version": ("version: 2\ncases: []\n", 1, "must be 1, not 2"),
    "version_as_text": ("version: '1'\ncases: []\n", 1, "must be 1, not '1'"),
    "unknown_setting": (CASE + "    settings: {widow_tokens: 9}\n" + TURN, 5, "window_tokens?"),
    "impossible_setting": (CASE + "    settings:\n      top_k: 0\n" + TURN, 6, "from 1 to 200"),
    "settings_at_odds": (CASE + "    settings: {fold_low: 0.9}\n" + TURN, 5, "below fold_high"),
    "setting_of_the_machine": (CASE + "    settings: {data_dir: x}\n" + TURN, 5, "data_dir"),
    "negative_repeat": (CASE + TURN + "        repeat: -1\n", 7, "at least 1"),
    "no_samples": (CASE + "    samples: 0\n" + TURN, 5, "at least 1"),
    "pass_rate_2": (CASE + "    pass_rate: 2\n" + TURN, 5, "at most 1"),
    "no_turns": (CASE + "    turns: []\n", 5, "at least one"),
    "no_cases": ("version: 1\ncases: []\n", 2, "no cases"),
    "list_for_a_text": (ASSERT + "contains: [x, y]", 8, "contains-any"),
    "text_for_a_list": (ASSERT + "contains-any: x", 8, "a list of texts"),
    "two_in_one": (ASSERT + "contains: x\n            equals: y", 8, "one 'name: value'"),
    "unknown_language": (ASSERT + "language: korean", 8, "ko"),
    "share_above_1": (ASSERT + "reused-share: 5", 8, "from 0 to 1"),
    "min_above_max": (ASSERT + "prompt-tokens: {min: 9, max: 1}", 8, "min does not exceed"),
    "negative_limit": (ASSERT + "latency-s: -1", 8, "number from 0"),
    "unknown_behaviour": (CASE + TURN + "        reply: {behaviour: sing}\n", 7, "from-prompt"),
    "unknown_action": (CASE + "    turns:\n      - action: rety\n", 6, "retry"),
    "edit_without_a_turn": (CASE + "    turns:\n      - {action: edit, user: x}\n", 6, "'turn'"),
    "assertion_without_a_reply": (
        CASE + "    turns:\n      - action: restart\n        assert: [{contains: x}]\n",
        7,
        "no 'assert'",
    ),
    "nothing_to_say": (CASE + "    turns:\n      - assert: []\n", 6, "needs 'user'"),
    "half_a_character": (CASE + '    turns:\n      - user: "\\ud800"\n', 6, "half a character"),
    "half_a_character_in_a_pattern": (ASSERT + 'regex: "\\ud800"', 8, "half a character"),
    "number_without_end": (CASE + "    seed: 0x" + "f" * 6000 + "\n" + TURN, 5, "too large"),
    "seed_too_large": (CASE + "    seed: 9999999999999999999\n" + TURN, 5, "at most"),
    "links_in_a_circle": (CASE + "    documents: [circle.txt]\n" + TURN, 5, "is not a path"),
    "name_without_end": (CASE + f"    documents: [{'a' * 5000}]\n" + TURN, 5, "is not a path"),
    "documents_of_one_name": (
        CASE + "    documents: [own.txt, sub/own.txt]\n" + TURN,
        5,
        "a document 'own.txt' is there already",
    ),
    "message_of_a_gigabyte": (
        CASE + f"    turns:\n      - user: {'a' * 10_000}\n        copies: 100000\n",
        7,
        "10,000,000 characters at most",
    ),
    "unknown_key_named_str": ("str: 1\n" + CASE + TURN, 1, "unknown key 'str'"),
    "similar_with_a_mapping": (ASSERT + "similar: {to: x, min: {max: 0.2}}", 8, "from 0 to 1"),
    "cites_page_0": (ASSERT + "cites: 'a.txt#0'", 8, "NAME#PAGE"),
    "cites_a_page_without_end": (ASSERT + f"cites: 'a.txt#{'9' * 5000}'", 8, "NAME#PAGE"),
    "cites_no_page": (ASSERT + "cites: 'a.txt#one'", 8, "NAME#PAGE"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_with_file_and_line(name: str, tmp_path: Path) -> None:
    text, line, words = MISTAKES[name]
    folder = tmp_path / "suites"
    folder.mkdir()
    (tmp_path / "out.txt").write_text("secret", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "out.txt")
    (folder / "circle.txt").symlink_to("circle.txt")
    (folder / "sub").mkdir()
    for own in (folder / "own.txt", folder / "sub" / "own.txt"):
        own.write_text("The fee is 30 euros.", encoding="utf-8")
    (folder / "other.yaml").write_text("version: 1\ninclude: [suite.yaml]\n", encoding="utf-8")
    (folder / "bad.yaml").write_text("version: 1\ncases:\n  - idd: a\n", encoding="utf-8")
    path = folder / "suite.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    outcome = inside("regress", path, "--model", "scripted")
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("chatbot: ") and outcome.err.count("\n") == 1
    found = re.search(r"(\w+\.yaml), line (\d+): ", outcome.err)
    assert found is not None, outcome.err
    assert int(found[2]) == line, outcome.err
    assert words in outcome.err
    assert len(outcome.err) < 700


def test_there_are_thirty_kinds() -> None:
    assert len(MISTAKES) >= 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none.yaml",), "none.yaml: the suite cannot be read: No such file"),
        (("compare", "a.json"), "two runs"),
        (("compare", "a.json", "b.json"), "a.json cannot be read"),
        (("matrix",), "matrix takes suites"),
        (("record", "none"), "no chat 'none'"),
        (("ok.yaml", "--samples", "0"), "--samples"),
        (("ok.yaml", "--workers", "0"), "--workers"),
        (("ok.yaml", "--set", "windw_tokens=9"), "window_tokens?"),
        (("ok.yaml", "--set", "window_tokens=9"), "at least 64"),
        (("ok.yaml", "--set", "top_k=1,2"), "matrix"),
        (("ok.yaml", "--tags", "none"), "quick"),
        (("ok.yaml", "--set", "window_tokens=x"), "not 'x'."),
        (("ok.yaml", "--save", "ok.yaml"), "would overwrite the suite ok.yaml"),
        (("ok.yaml", "--save", "a", "--html", "a"), "would overwrite the file of --save"),
        (("ok.yaml", "--html", "none/a.html"), "no such folder"),
        (("ok.yaml", "--junit", "."), "is a folder"),
        (("ok.yaml", "-o", "b.yaml"), "takes no -o"),
        (("compare", "a.json", "b.json", "--html", "c.html"), "takes no --html"),
        (("matrix", "ok.yaml", "--set", "top_k=1,2", "--save", "c.json"), "takes no --save"),
        (("matrix", "ok.yaml", "--set", "top_k=1,x"), "not 'x'."),
        (("ok.yaml", "--baseline", "ok.yaml"), "no earlier run"),
        (("ok.yaml", "--filter-failing", "none.json"), "none.json cannot be read"),
        (("matrix", "ok.yaml"), "--set"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    arguments: tuple[str, ...], words: str, empty_home: Path
) -> None:
    ok = CASE.replace("    why", "    tags: [quick]\n    why") + TURN
    (empty_home / "ok.yaml").write_text(ok, encoding="utf-8")
    outcome = inside("regress", *arguments, "--model", "scripted")
    assert outcome.code == 2
    assert words in outcome.err and outcome.err.count("\n") == 1
    assert outcome.out == ""
    assert (empty_home / "ok.yaml").read_text(encoding="utf-8") == ok


def test_words_that_yaml_reads_as_something_else_are_texts(tmp_path: Path) -> None:
    text = CASE + "    settings: {summary: off}\n    tags: [no, 12:30, 2026-01-31]\n" + TURN
    path = tmp_path / "suite.yaml"
    path.write_text(text, encoding="utf-8")
    assert inside("regress", path, "--model", "scripted", "--tags", "12:30").code == 0
