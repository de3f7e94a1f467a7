"""The reference of suites names all that there is, and its example passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from cli import ROOT, inside

from chatbot.regression import schema
from chatbot.regression.assertions import RULES

TEXT = (ROOT / "docs" / "regression.md").read_text(encoding="utf-8")


def test_the_reference_names_everything() -> None:
    named = set(re.findall(r"`([^`\n]+)`", TEXT))
    words = {word for name in named for word in re.findall(r"[\w-]+", name)}
    words |= set(re.findall(r"^ *-? ?(\w+):", TEXT, re.MULTILINE))
    wanted = {*RULES, *get_args(schema.Behaviour), *get_args(schema.Summariser)}
    wanted |= {*get_args(schema.Action)} - {"ask"}
    for model in (schema.SuiteFile, schema.Defaults, schema.Case, schema.Turn, schema.ReplyScript):
        wanted |= {field.alias or name for name, field in model.model_fields.items()}
    assert wanted - words <= {"title"}


def test_the_example_passes(tmp_path: Path) -> None:
    example = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[0]
    path = tmp_path / "my.yaml"
    path.write_text(example.replace("include: [other.yaml]\n", ""), encoding="utf-8")
    outcome = inside("regress", path, "--model", "scripted")
    assert outcome.code == 0, outcome.out
