"""The shape of a suite file, key by key, and the sentence for what does not fit it.

Knows no assertion's meaning and reads no file; assertions stay as they are written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from chatbot.regression.faults import shown, unknown
from chatbot.regression.yaml_lines import Located, Place

Settings = dict[str, Any]
MAX_SEED = 2**62
"""With the number of a sample added, still a seed that torch takes."""
Texts = tuple[StrictStr, ...]
Assertions = list[Any]
Behaviour = Literal[
    "says", "from-prompt", "echo", "parameters", "control-tokens", "slow", "stall", "fail",
    "out-of-memory", "empty", "endless", "chance", "by-temperature", "obey",
]  # fmt: skip
Summariser = Literal["keeps", "forgets", "answers", "empty", "fails"]
Action = Literal[
    "ask", "retry", "edit", "restart", "upload", "delete_document", "forget_turn", "switch_version",
    "add_fact",
    "edit_summary", "delete_fact", "pin_fact",
]  # fmt: skip


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReplyScript(_Strict):
    """What the scripted engine does in place of a model."""

    behaviour: Behaviour = "from-prompt"
    text: StrictStr = ""
    otherwise: StrictStr = "I do not know."
    right: float = Field(1.0, ge=0.0, le=1.0)
    tokens_per_s: float | None = Field(None, gt=0.0)
    after_tokens: StrictInt = Field(3, ge=0, le=10_000)


class Turn(_Strict):
    """One step of a case: a question, or something that the user does."""

    user: StrictStr | None = None
    repeat: StrictInt = Field(1, ge=1, le=10_000)
    copies: StrictInt = Field(1, ge=1, le=100_000)
    action: Action = "ask"
    turn: StrictInt | None = Field(None, ge=1)
    text: StrictStr | None = None
    document: StrictStr | None = None
    name: StrictStr | None = None
    conversation: StrictStr = "main"
    stop_after_tokens: StrictInt | None = Field(None, ge=0)
    close_after_tokens: StrictInt | None = Field(None, ge=0)
    reply: StrictStr | ReplyScript | None = None
    asserts: Assertions = Field(default_factory=list, alias="assert")


class Defaults(_Strict):
    """What all cases of a file have unless they say otherwise."""

    samples: StrictInt = Field(1, ge=1, le=1_000)
    pass_rate: float = Field(1.0, gt=0.0, le=1.0)
    seed: StrictInt = Field(1, ge=0, le=MAX_SEED)
    timeout_s: float = Field(300.0, gt=0.0, le=86_400.0)
    settings: Settings = Field(default_factory=dict)
    always: Assertions = Field(default_factory=list)
    documents: Texts = ()
    tags: Texts = ()
    reply: StrictStr | ReplyScript = Field(default_factory=ReplyScript)
    summariser: Summariser = "keeps"
    needs: Literal["any", "scripted", "model"] = "any"


class Case(_Strict):
    """One conversation to have."""

    id: StrictStr = Field(pattern=r"^[\w][\w.\-]{0,99}$")
    why: StrictStr = Field(pattern=r"\S")
    turns: list[Turn] = Field(min_length=1)
    tags: Texts = ()
    documents: Texts | None = None
    history: StrictStr | None = None
    system: StrictStr | None = None
    settings: Settings = Field(default_factory=dict)
    samples: StrictInt | None = Field(None, ge=1, le=1_000)
    pass_rate: float | None = Field(None, gt=0.0, le=1.0)
    seed: StrictInt | None = Field(None, ge=0, le=MAX_SEED)
    timeout_s: float | None = Field(None, gt=0.0, le=86_400.0)
    always: Assertions = Field(default_factory=list)
    reply: StrictStr | ReplyScript | None = None
    summariser: Summariser | None = None
    needs: Literal["any", "scripted", "model"] | None = None


class SuiteFile(_Strict):
    """A whole file."""

    version: Literal[1]
    title: StrictStr = ""
    defaults: Defaults = Field(default_factory=Defaults)
    include: Texts = ()
    cases: list[Case] = Field(default_factory=list)


def parse(located: Located) -> SuiteFile:
    """The file's content, checked. Raises SuiteError for the first thing that does not fit."""
    if not isinstance(located.data, dict):
        raise located.fault((), "a suite is a mapping; begin with version: 1.")
    _refuse_other_version(located, located.data)
    try:
        suite = SuiteFile.model_validate(located.data)
    except ValidationError as error:
        raise _fault(located, error) from error
    if not suite.cases and not suite.include:
        raise located.fault(("cases",), "there are no cases; write at least one.")
    return suite


def _refuse_other_version(located: Located, data: Mapping[str, Any]) -> None:
    """Before all else, since a file of another version may look different everywhere."""
    if "version" not in data:
        raise located.fault((), "'version' is missing; begin with version: 1.")
    if type(data["version"]) is not int or data["version"] != 1:
        sentence = f"version must be 1, not {shown(data['version'])}."
        raise located.fault(("version",), sentence)


def _fault(located: Located, error: ValidationError) -> Exception:
    errors = error.errors()
    # Of several members of a union, only the last says what a mapping must look like.
    first = errors[0]
    if len(errors) > 1 and isinstance(first["input"], str) is False and "str" in first["loc"]:
        first = errors[1]
    place = _place(first["loc"])
    key = str(place[-1]) if place else "the suite"
    if first["type"] == "extra_forbidden":
        return located.fault(place, unknown("key", key, _known(place)))
    if first["type"] == "missing":
        return located.fault(place, f"'{key}' is missing{_MISSING.get(key, '')}.")
    wanted = _wanted(key, first["type"], first)
    return located.fault(place, f"{_named(place)} must be {wanted}, not {shown(first['input'])}.")


def _place(found: Place) -> Place:
    """Without the members of the union that a reply may be."""
    return tuple(
        part
        for n, part in enumerate(found)
        if not (n and found[n - 1] == "reply" and part in ("str", "ReplyScript"))
    )


_MISSING = {
    "why": "; each case says why it exists",
    "id": "; each case has a name of its own",
    "turns": "; a case needs something to say",
}
_KINDS = {
    "string": "a text (put it in quotes)",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping of keys and values",
    "model": "a mapping of keys and values",
}


def _named(place: Place) -> str:
    if place and isinstance(place[-1], int):
        return f"entry {place[-1] + 1} of {place[-2]}" if len(place) > 1 else "the entry"
    return str(place[-1]) if place else "the suite"


def _wanted(key: str, kind: str, error: Any) -> str:
    context = error.get("ctx", {})
    if kind == "literal_error":
        return str(context["expected"]).replace("'", "")
    if kind in ("too_short",):
        return "a list of at least one"
    if kind == "string_pattern_mismatch":
        return "one line that says something" if key == "why" else "letters, digits, - _ and ."
    bounds = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    said = [f"{word} {context[name]:g}" for name, word in bounds.items() if name in context]
    if said:
        return f"a number {' and '.join(said)}"
    return _KINDS.get(kind.split("_")[0], "something else")


def _known(place: Place) -> list[str]:
    """The keys that may stand where an unknown one does."""
    model: type[BaseModel] = SuiteFile
    for name in place[:-1]:
        model = _INNER.get(name, model)
    return [field.alias or name for name, field in model.model_fields.items()]


_INNER: dict[str | int, type[BaseModel]] = {
    "defaults": Defaults,
    "cases": Case,
    "turns": Turn,
    "reply": ReplyScript,
}
BEHAVIOURS: tuple[str, ...] = get_args(Behaviour)
__all__ = ["BEHAVIOURS", "Case", "Defaults", "ReplyScript", "SuiteFile", "Turn", "parse"]
