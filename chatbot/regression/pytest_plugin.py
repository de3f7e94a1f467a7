"""Suites as pytest items: `pytest tests/conversations/memory.yaml -k name`. Knows no report.

Load it with `-p chatbot.regression.pytest_plugin`, or import `pytest_collect_file` in a conftest.
Cases run on the scripted engine, whatever the user's settings are; with `-p` there is a flag
`--regress-model MODEL`, which takes the settings too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatbot.regression.report_text import Paint, case_lines
from chatbot.regression.results import CaseResult
from chatbot.regression.runner import skip_reason
from chatbot.regression.sampling import RunOptions, run_case
from chatbot.regression.suite import Case, load_suites
from chatbot.regression.target import SCRIPTED, Workshop
from chatbot.settings import Settings, load_settings

FOLDER = "conversations"
"""Suites in folders of this name are collected; elsewhere only when they are named."""
_WORKSHOP = pytest.StashKey[Workshop]()


class CaseFailed(Exception):
    """A case did not pass; carries its result."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(result.reason)
        self.result = result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Another model than the scripted one."""
    parser.addoption("--regress-model", metavar="MODEL", help="run conversation suites on this")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect the suites among the files."""
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    if file_path.parent.name != FOLDER and not parent.session.isinitpath(file_path):
        return None
    return SuiteFile.from_parent(parent, path=file_path)


class SuiteFile(pytest.File):
    """One suite, with all that it includes."""

    def collect(self) -> Iterator[pytest.Item]:
        options = RunOptions(_settings(self.config.getoption("--regress-model", None)))
        for case in load_suites([self.path]).cases:
            yield CaseItem.from_parent(self, name=case.id, case=case, options=options)


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, options: RunOptions, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.options = options
        self.extra_keyword_matches.update(case.tags)  # so that -k finds them

    def runtest(self) -> None:
        if reason := skip_reason(self.case, self.options):
            pytest.skip(reason)
        result = run_case(self.case, self.options, _workshop(self.session))
        if not result.good:
            raise CaseFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return "\n".join(case_lines(excinfo.value.result, Paint(False)))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.case.id


def _settings(model: str | None) -> Settings:
    """Tests must not depend on whose machine they run on, unless a model is named."""
    if model is None:
        return Settings(model=SCRIPTED, embedding_model="none")
    return load_settings({"model": model})


def _workshop(session: pytest.Session) -> Workshop:
    """One for the session, so that a model is loaded once."""
    if _WORKSHOP not in session.stash:
        workshop = Workshop()
        session.stash[_WORKSHOP] = workshop
        session.config.add_cleanup(workshop.close)
    return session.stash[_WORKSHOP]


__all__ = ["CaseFailed", "CaseItem", "SuiteFile", "pytest_addoption", "pytest_collect_file"]
