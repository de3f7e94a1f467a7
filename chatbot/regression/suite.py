"""Suite files to cases that can be run: includes, defaults, documents and settings resolved.

Runs nothing. Every path of a suite lies in the folder of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from chatbot.errors import InputError
from chatbot.interchange import read_conversation
from chatbot.messages import Conversation
from chatbot.regression import schema
from chatbot.regression.assertions import built_in, layered, read_assertions
from chatbot.regression.digest import digest
from chatbot.regression.faults import SuiteError, shown
from chatbot.regression.rules import Assertion
from chatbot.regression.schema import Defaults, ReplyScript
from chatbot.regression.steps import Step, read_step
from chatbot.regression.suite_settings import checked_settings
from chatbot.regression.yaml_lines import Located, Place, read_yaml

MAX_INCLUDED_FILES = 100


@dataclass(frozen=True, slots=True)
class SuiteDocument:
    """A document of a case: where it is, and its name in the library."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Case:
    """A case with everything that its file says about it."""

    id: str
    why: str
    file: str
    line: int
    steps: tuple[Step, ...]
    always: tuple[Assertion, ...]
    samples: int
    pass_rate: float
    seed: int
    timeout_s: float
    tags: tuple[str, ...]
    documents: tuple[SuiteDocument, ...]
    history: Conversation | None
    system: str | None
    default_settings: Mapping[str, Any]
    settings: Mapping[str, Any]
    """What this case needs whatever is being tried; wins over all else."""
    summariser: str
    needs: Literal["any", "scripted", "model"]
    digest: str


@dataclass(frozen=True, slots=True)
class Suite:
    """All cases of one or more files, in their order."""

    files: tuple[str, ...]
    cases: tuple[Case, ...]

    @property
    def digest(self) -> str:
        """Changes with every case, its documents and its settings, and not with their order."""
        return digest(sorted(case.digest for case in self.cases))


def load_suites(paths: Sequence[Path]) -> Suite:
    """Read suites with all that they include. Raises SuiteError for the first mistake."""
    reader = _Reader()
    for path in paths:
        reader.read(path.resolve(), str(path), ())
    return Suite(tuple(reader.files), tuple(reader.cases.values()))


class _Reader:
    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        self.cases: dict[str, Case] = {}
        self._done: set[Path] = set()

    def read(self, path: Path, name: str, within: tuple[Path, ...]) -> None:
        if path in self._done:
            return
        located = read_yaml(path, name)
        suite = schema.parse(located)
        self.files[name] = path
        for n, included in enumerate(suite.include):
            place = ("include", n)
            target = inside(located, place, path.parent, included)
            if target in (*within, path):
                raise located.fault(place, f"the suite {included!r} includes itself; remove that.")
            if len(self.files) > MAX_INCLUDED_FILES:
                raise located.fault(place, "too many suites are included; split them up.")
            self.read(target, _shown_path(name, included), (*within, path))
        self._done.add(path)
        maker = _Maker(located, path.parent, suite.defaults)
        for n, case in enumerate(suite.cases):
            self._add(located, ("cases", n, "id"), maker.case(case, n))

    def _add(self, located: Located, place: Place, case: Case) -> None:
        if (other := self.cases.get(case.id)) is not None:
            sentence = f"there is a case {case.id!r} in {other.file}, line {other.line}, already."
            raise located.fault(place, sentence)
        self.cases[case.id] = case


class _Maker:
    """Makes the cases of one file."""

    def __init__(self, located: Located, folder: Path, defaults: Defaults) -> None:
        self._located = located
        self._folder = folder
        self._defaults = defaults
        self._always = read_assertions(located, ("defaults", "always"), defaults.always)
        self._settings = checked_settings(located, ("defaults", "settings"), defaults.settings)

    def case(self, case: schema.Case, number: int) -> Case:
        located, place, own = self._located, ("cases", number), self._defaults
        default_reply = case.reply if case.reply is not None else own.reply
        documents = self._documents(case, place)
        steps = tuple(
            read_step(
                located,
                (*place, "turns", n),
                turn,
                default_reply=default_reply,
                resolve=lambda at, path: inside(located, at, self._folder, path),
            )
            for n, turn in enumerate(case.turns)
        )
        always = read_assertions(located, (*place, "always"), case.always)
        return Case(
            id=case.id,
            why=" ".join(case.why.split()),
            file=located.file,
            line=located.line((*place, "id")),
            steps=steps,
            always=layered(always, self._always, built_in()),
            samples=case.samples or own.samples,
            pass_rate=case.pass_rate or own.pass_rate,
            seed=own.seed if case.seed is None else case.seed,
            timeout_s=case.timeout_s or own.timeout_s,
            tags=tuple(dict.fromkeys((*own.tags, *case.tags))),
            documents=documents,
            history=self._history(case, place),
            system=case.system,
            default_settings=self._settings,
            settings=checked_settings(
                located, (*place, "settings"), case.settings, under=self._settings
            ),
            summariser=case.summariser or own.summariser,
            needs=case.needs or own.needs,
            digest=self._digest(case, number, documents, steps),
        )

    def _documents(self, case: schema.Case, place: Place) -> tuple[SuiteDocument, ...]:
        given, at = case.documents, (*place, "documents")
        if given is None:
            given, at = self._defaults.documents, ("defaults", "documents")
        documents: dict[str, SuiteDocument] = {}
        for n, written in enumerate(given):
            path, name = inside(self._located, (*at, n), self._folder, written), Path(written).name
            if name in documents:
                # In the library the second would take the place of the first.
                sentence = f"a document {shown(name)} is there already; rename one of them."
                raise self._located.fault((*at, n), sentence)
            documents[name] = SuiteDocument(path, name)
        return tuple(documents.values())

    def _history(self, case: schema.Case, place: Place) -> Conversation | None:
        if case.history is None:
            return None
        at = (*place, "history")
        path = inside(self._located, at, self._folder, case.history)
        try:
            return read_conversation(path)
        except InputError as error:
            sentence = str(error).removeprefix(f"{path}: ")
            raise self._located.fault(at, f"{case.history}: {sentence}") from error

    def _digest(
        self,
        case: schema.Case,
        number: int,
        documents: Iterable[SuiteDocument],
        steps: Iterable[Step],
    ) -> str:
        paths = [document.path for document in documents]
        paths += [step.document for step in steps if step.document is not None]
        if case.history is not None:
            paths.append(self._folder / case.history)
        data = self._located.data
        return digest([data.get("defaults"), data["cases"][number]], paths)


def inside(located: Located, place: Place, folder: Path, written: str) -> Path:
    """A file that lies in the folder of the suite. Raises SuiteError."""
    try:
        path = (folder / written).resolve()
        is_file = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise located.fault(place, f"{shown(written)} is not a path; check it.") from error
    if not path.is_relative_to(folder.resolve()):
        sentence = f"{shown(written)} lies outside the suite's folder; put it into the folder."
        raise located.fault(place, sentence)
    if not is_file:
        raise located.fault(place, f"there is no file {shown(written)} in the suite's folder.")
    return path


def _shown_path(name: str, included: str) -> str:
    return str(Path(name).parent / included)


__all__ = ["Case", "ReplyScript", "Suite", "SuiteDocument", "SuiteError", "load_suites"]
