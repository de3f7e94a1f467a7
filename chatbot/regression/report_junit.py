"""A run as JUnit XML, for build servers."""

from __future__ import annotations

from xml.etree import ElementTree

from chatbot.regression.report_text import Paint, case_lines
from chatbot.regression.results import CaseResult, RunResult
from chatbot.regression.texts import printable


def junit_xml(run: RunResult) -> str:
    """One test suite for each file, one test case for each case."""
    root = ElementTree.Element("testsuites", name="chatbot regress")
    for file in dict.fromkeys(case.file for case in run.cases):
        cases = [case for case in run.cases if case.file == file]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=printable(file),
            timestamp=run.started,
            tests=str(len(cases)),
            failures=str(sum(case.status == "failed" for case in cases)),
            errors=str(sum(case.status == "error" for case in cases)),
            skipped=str(sum(case.status == "skipped" for case in cases)),
            time=f"{sum(case.duration_s for case in cases):.3f}",
        )
        for case in cases:
            _add(suite, case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add(suite: ElementTree.Element, case: CaseResult) -> None:
    element = ElementTree.SubElement(
        suite,
        "testcase",
        name=printable(case.id),
        classname=printable(case.file),
        time=f"{case.duration_s:.3f}",
    )
    tag = {"failed": "failure", "error": "error", "skipped": "skipped"}.get(case.status)
    if tag is not None:
        outcome = ElementTree.SubElement(element, tag, message=printable(case.reason))
        outcome.text = printable("\n".join(case_lines(case, Paint(False))))
