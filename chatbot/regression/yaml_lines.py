"""YAML to plain data and the line of every value. Knows nothing of suites.

Only texts, numbers, true/false, null, lists and mappings with text keys; nothing that YAML can
hide: no keys twice, no tags, no merges, and aliases only as far as they do not multiply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from chatbot.regression.faults import SuiteError, shown

MAX_FILE_BYTES = 2 << 20
MAX_VALUES = 100_000
MAX_DEPTH = 40
MAX_BITS = 128
Place = tuple[str | int, ...]
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + kind for kind in ("str", "int", "float", "bool", "null")}


@dataclass
class Located:
    """Parsed data, and for every place in it the line where it is written."""

    file: str
    data: Any = None
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest one around it that is there."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def fault(self, place: Place, sentence: str) -> SuiteError:
        """The error for what is written at a place."""
        return SuiteError(self.file, self.line(place), sentence)


def read_yaml(path: Path, name: str) -> Located:
    """Parse a file; `name` is what it is called in sentences. Raises SuiteError."""
    try:
        with path.open("rb") as file:  # a device or a pipe has no size
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise SuiteError(name, 0, f"the suite cannot be read: {reason}.") from error
    if len(data) > MAX_FILE_BYTES:
        sentence = f"the file has more than {MAX_FILE_BYTES >> 20} MiB; split it up."
        raise SuiteError(name, 1, sentence)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SuiteError(name, line, "the file is not UTF-8; save it as UTF-8.") from error
    return parse_yaml(text, name)


def parse_yaml(text: str, name: str) -> Located:
    """Parse a text. Raises SuiteError."""
    located = Located(name)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise SuiteError(name, 1, "the file is empty; write version: 1 and cases.")
        located.data = _Reader(located).read(node, (), 0)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, name) from error
    except yaml.YAMLError as error:
        sentence = "there is a character that YAML does not allow; remove it."
        raise SuiteError(name, _line_of(text, error), sentence) from error
    except RecursionError as error:
        raise SuiteError(name, _deepest_line(text), "it is nested too deeply.") from error
    return located


class _Reader:
    def __init__(self, located: Located) -> None:
        self._located = located
        self._constructor = yaml.constructor.SafeConstructor()
        self._values = 0

    def read(self, node: yaml.Node, place: Place, depth: int) -> Any:
        line = node.start_mark.line + 1
        self._located.lines.setdefault(place, line)
        self._values += 1
        if self._values > MAX_VALUES or depth > MAX_DEPTH:
            sentence = "there are too many values, or they are nested too deeply; split it up."
            raise SuiteError(self._located.file, line, sentence)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*place, n), depth + 1) for n, item in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, place: Place, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if key_node.tag != _TAG + "str":
                sentence = f"the key {shown(key)} is not a text; put it in quotes."
                raise SuiteError(self._located.file, line, sentence)
            key = self._text(key, line)
            if key in result:
                sentence = f"the key {key!r} is there twice; keep one."
                raise SuiteError(self._located.file, line, sentence)
            self._located.lines[(*place, key)] = line
            result[key] = self.read(value_node, (*place, key), depth + 1)
        return result

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        if node.tag == _TAG + "str" or _is_meant_as_text(node):
            return self._text(node.value, line)
        if node.tag not in _PLAIN_TAGS:
            sentence = f"{shown(node.value)} is read as something else than text; put it in quotes."
            raise SuiteError(self._located.file, line, sentence)
        try:
            value = self._constructor.construct_object(node)
        except ValueError as error:
            sentence = f"{shown(node.value)} is no number; put it in quotes."
            raise SuiteError(self._located.file, line, sentence) from error
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            sentence = f"{shown(node.value)} is too large a number; put it in quotes."
            raise SuiteError(self._located.file, line, sentence)
        return value

    def _text(self, text: str, line: int) -> str:
        """With characters whole that were written as two escapes, as JSON does."""
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            sentence = f"{shown(text)} has half a character, such as \\ud800; remove it."
            raise SuiteError(self._located.file, line, sentence) from error


def _is_meant_as_text(node: yaml.Node) -> bool:
    """YAML 1.1 reads off as false, 12:30 as 750 and 2026-01-31 as a date; nobody means that."""
    kind, value = node.tag.removeprefix(_TAG), str(node.value)
    if kind == "bool":
        return value.lower() not in ("true", "false")
    return kind == "timestamp" or (kind in ("int", "float") and ":" in value)


def _syntax(error: yaml.MarkedYAMLError, name: str) -> SuiteError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    problem = error.problem or "the YAML cannot be read"
    if r"'\t'" in problem:
        return SuiteError(name, line, "there is a tab; indent with spaces.")
    hint = "; texts with ? : # , or brackets need quotes" if "expected" in problem else ""
    return SuiteError(name, line, f"this is not valid YAML: {problem}{hint}.")


def _deepest_line(text: str) -> int:
    """The line that nests most: by its brackets, or else by how far it is indented."""

    def depth(line: str) -> tuple[int, int]:
        return sum(line.count(bracket) for bracket in "[{"), len(line) - len(line.lstrip())

    lines = text.splitlines()
    return max(range(len(lines)), key=lambda n: depth(lines[n])) + 1


def _line_of(text: str, error: yaml.YAMLError) -> int:
    position = getattr(error, "position", 0)
    return text.count("\n", 0, position) + 1
