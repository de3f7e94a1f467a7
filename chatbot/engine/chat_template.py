"""Takes a model's Jinja chat template apart into its control texts; knows nothing of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

# Llama 3.1 and later write today's date into the system turn. A date that changes would change
# the front of every prompt from day to day and throw every cache away, so it stays the one that
# those templates name as their default.
FIXED_DATE = datetime(2024, 7, 26)

_SKELETON = ("system", "user", "assistant", "user", "assistant", "user")
# What broken or foreign templates raise while they run, besides Jinja's own errors.
_TEMPLATE_FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class TemplateUnusableError(Exception):
    """A chat template that cannot be split into fixed control texts; says why, without a stop."""


@dataclass(frozen=True, slots=True)
class ControlTexts:
    """What a template writes around the contents, by the roles that it stands between.

    `has_system_role` False: the template takes no system text, so `after_system` is empty.
    """

    begin: str
    after_system: str
    after_user: str
    after_assistant: str
    end: str
    has_system_role: bool = True


def control_texts(template: str, named_tokens: Mapping[str, str]) -> ControlTexts:
    """Split `template` at placeholder contents.

    `named_tokens` are the variables that templates print, such as bos_token and eos_token.
    Raises TemplateUnusableError when the texts between contents are not fixed by the roles alone.
    """
    try:
        compiled = _environment().from_string(template)
    except _TEMPLATE_FAULTS as error:
        raise TemplateUnusableError(f"it is not a valid template ({error})") from error
    reasons: list[str] = []
    for with_system in (True, False):
        # Templates of multimodal models want a list of parts instead of a string.
        for as_parts in (False, True):
            try:
                return _split(_renderer(compiled, named_tokens, as_parts), with_system)
            except TemplateUnusableError as error:
                reasons.append(str(error))
    raise TemplateUnusableError(reasons[2])


def rendered_texts(render: Callable[[list[dict[str, str]]], str]) -> ControlTexts:
    """The same for a template that somebody else renders: `render` gives the prompt of messages.

    Raises TemplateUnusableError, and whatever `render` raises.
    """

    def gaps(roles: Sequence[str]) -> list[str]:
        marks = _marks(roles)
        pairs = zip(roles, marks, strict=True)
        return _gaps(render([{"role": role, "content": mark} for role, mark in pairs]), marks)

    try:
        return _split(gaps, with_system=True)
    except TemplateUnusableError:
        return _split(gaps, with_system=False)


def _marks(roles: Sequence[str]) -> list[str]:
    return [f"zq{number}placeholder{number}qz" for number in range(len(roles))]


def _split(render: Callable[[Sequence[str]], list[str]], with_system: bool) -> ControlTexts:
    first = 0 if with_system else 1
    gaps = render(_SKELETON[first:])
    opening = render(_SKELETON[first:2])
    begin = gaps.pop(0)
    after_system = gaps.pop(0) if with_system else ""
    after_user, after_assistant, after_user_2, after_assistant_2, end = gaps
    if (after_user, after_assistant) != (after_user_2, after_assistant_2):
        raise TemplateUnusableError("it writes later turns otherwise than earlier ones")
    if opening != [begin, *([after_system] if with_system else []), end]:
        raise TemplateUnusableError("it writes the first turn otherwise than later ones")
    # Old templates know no generation prompt; the assistant's header is in the other gap. A
    # space alone is no header: models begin their replies with it themselves.
    if after_user.startswith(end) and after_user[len(end) :].strip():
        end = after_user
    return ControlTexts(begin, after_system, after_user, after_assistant, end, with_system)


def _renderer(
    compiled: jinja2.Template, named_tokens: Mapping[str, str], as_parts: bool
) -> Callable[[Sequence[str]], list[str]]:
    def render(roles: Sequence[str]) -> list[str]:
        marks = _marks(roles)
        messages = [
            {"role": role, "content": [{"type": "text", "text": mark}] if as_parts else mark}
            for role, mark in zip(roles, marks, strict=True)
        ]
        try:
            text = compiled.render(
                messages=messages,
                add_generation_prompt=True,
                tools=None,
                documents=None,
                date_string=FIXED_DATE.strftime("%d %b %Y"),
                # Thinking aloud would use up the reply; a chat asks such models to answer at once.
                enable_thinking=False,
                **named_tokens,
            )
        except _TEMPLATE_FAULTS as error:
            raise TemplateUnusableError(f"it refuses a plain chat ({error})") from error
        return _gaps(text, marks)

    return render


def _gaps(text: str, marks: Sequence[str]) -> list[str]:
    gaps = []
    for mark in marks:
        if text.count(mark) != 1:
            raise TemplateUnusableError("it does not write each message exactly once, in order")
        before, text = text.split(mark)
        gaps.append(before)
    gaps.append(text)
    if any("'type'" in gap or '"type"' in gap for gap in gaps):
        raise TemplateUnusableError("it prints message parts as data")
    return gaps


class _GenerationTag(jinja2.ext.Extension):
    """`{% generation %}...{% endgeneration %}` marks replies for training; prints its body."""

    tags = {"generation"}  # noqa: RUF012 - the base class declares it so

    def parse(self, parser: Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def _environment() -> ImmutableSandboxedEnvironment:
    """The surroundings that model makers write their templates for; templates are untrusted."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_GenerationTag, jinja2.ext.loopcontrols],
    )
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = FIXED_DATE.strftime
    environment.filters["tojson"] = _to_json
    return environment


def _raise_exception(message: object) -> NoReturn:
    raise jinja2.TemplateError(str(message))


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    # Jinja's own filter escapes for HTML, which templates do not mean.
    return json.dumps(value, ensure_ascii=False, indent=indent)
