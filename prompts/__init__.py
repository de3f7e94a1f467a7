"""The prompt texts, one file each, and their loader. Knows nothing of chats, models or budgets.

Texts lie in `prompts/<language>/<name>.txt`; `{variable}` marks a blank, `{{` and `}}` are braces.
A user's own folder of the same shape may replace some of them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Formatter

LANGUAGES = ("en", "ko")
DEFAULT_LANGUAGE = "en"
"""Used for every language that has no texts of its own."""

_FOLDER = Path(__file__).parent
_own_folder: list[Path] = []
"""At most one: where the user's own texts lie."""


class PromptError(Exception):
    """One sentence: a prompt is unknown or damaged, or its variables do not match."""


def load(name: str, language: str, **variables: str | int) -> str:
    """The prompt `name` with its blanks filled, without surrounding white space.

    A language without texts gets English ones. Values are data: braces in them stay as they are.
    Raises PromptError for an unknown name and for missing or unknown variables.
    """
    parts = _parts(name, language if language in LANGUAGES else DEFAULT_LANGUAGE)
    wanted = {field for _, field in parts if field is not None}
    missing, unknown = sorted(wanted - variables.keys()), sorted(variables.keys() - wanted)
    if missing:
        raise PromptError(f"The prompt {name!r} needs a value for {', '.join(missing)}.")
    if unknown:
        raise PromptError(f"The prompt {name!r} has no blank named {', '.join(unknown)}.")
    return "".join(
        literal + ("" if field is None else str(variables[field])) for literal, field in parts
    )


def variables_of(name: str, language: str = DEFAULT_LANGUAGE) -> frozenset[str]:
    """Names of the blanks of a prompt. Raises PromptError for an unknown name."""
    return frozenset(field for _, field in _parts(name, language) if field is not None)


def names(language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """All prompts that exist in `language`, sorted."""
    return tuple(sorted(path.stem for path in (_FOLDER / language).glob("*.txt")))


def use_folder(folder: Path | None) -> None:
    """Take texts from `folder/<language>/<name>.txt` where they are, for the whole program.

    None goes back to the built-in ones. Raises PromptError, and changes nothing, for a folder that
    is not there, a file that replaces no prompt, and blanks other than those of the original.
    """
    before = list(_own_folder)
    _own_folder[:] = [] if folder is None else [folder]
    _parts.cache_clear()
    try:
        _check_own_texts()
    except PromptError:
        _own_folder[:] = before
        _parts.cache_clear()
        raise


def _check_own_texts() -> None:
    for folder in _own_folder:
        if not folder.is_dir():
            raise PromptError(f"The folder of prompts {folder} is not there.")
        for path in sorted(folder.glob("*/*.txt")):
            language, name = path.parent.name, path.stem
            if language not in LANGUAGES or name not in names(language):
                raise PromptError(f"The prompt file {path} replaces none of the program's prompts.")
            wanted, found = _blanks(_read(_FOLDER, name, language)), _blanks(_parts(name, language))
            if wanted != found:
                listed = ", ".join(sorted(wanted)) or "none"
                raise PromptError(f"The prompt file {path} must have these blanks: {listed}.")


def _blanks(parts: tuple[tuple[str, str | None], ...]) -> set[str]:
    return {field for _, field in parts if field is not None}


@cache
def _parts(name: str, language: str) -> tuple[tuple[str, str | None], ...]:
    # The name is compared with the list, so that it can never be a path out of the folder.
    if name not in names(language):
        known = ", ".join(names(language))
        raise PromptError(f"There is no prompt {name!r} in {language!r}; known are: {known}.")
    for folder in _own_folder:
        if (folder / language / f"{name}.txt").is_file():
            return _read(folder, name, language)
    return _read(_FOLDER, name, language)


def _read(folder: Path, name: str, language: str) -> tuple[tuple[str, str | None], ...]:
    path = folder / language / f"{name}.txt"
    try:
        text = path.read_text(encoding="utf-8").strip()
        parsed = list(Formatter().parse(text))
    except (OSError, ValueError) as error:
        raise PromptError(f"The prompt file {path.name} cannot be used: {error}.") from error
    parts: list[tuple[str, str | None]] = []
    for literal, field, spec, conversion in parsed:
        if field is not None and (not field.isidentifier() or spec or conversion):
            raise PromptError(f"The prompt file {path.name} has a blank that is not a plain name.")
        parts.append((literal, field))
    return tuple(parts)
