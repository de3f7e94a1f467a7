"""Baselines, comparisons, reports and recorded chats."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

import pytest
from cli import inside
from regress_tools import FAILING, PASSING, run, run_one, write

from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import InputError
from chatbot.messages import Conversation, Message, PromptTrace, Segment, Turn
from chatbot.regression.compare import compare
from chatbot.regression.outputs import write_text
from chatbot.regression.record import case_from
from chatbot.regression.report_html import html_report
from chatbot.regression.report_junit import junit_xml
from chatbot.regression.report_text import Paint, case_lines
from chatbot.regression.results import load_run, save_run
from chatbot.regression.suite import load_suites
from chatbot.services import Services
from retrieval.types import Citation

SCRIPTED = ("--model", "scripted")
EVIL = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\x07 & \"'"
STATUS = "      - user: {}\n        reply: {}\n        assert: [{}]\n"


def test_a_saved_run_comes_back_as_it_was(tmp_path: Path) -> None:
    result = run(tmp_path, PASSING + FAILING)
    save_run(result, tmp_path / "run.json")
    assert load_run(tmp_path / "run.json") == json_round(result)


@pytest.mark.parametrize(("passes", "samples"), [(-1, 1), (2, 1), (0, -1), (10**30, 10**30)])
def test_a_saved_run_whose_numbers_cannot_be_is_refused(
    passes: int, samples: int, tmp_path: Path
) -> None:
    saved = tmp_path / "run.json"
    save_run(run(tmp_path, PASSING), saved)
    record = json.loads(saved.read_text(encoding="utf-8"))
    record["cases"][0] |= {"passes": passes, "samples": samples}
    saved.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        load_run(saved)


def test_a_full_disk_leaves_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "run.json"
    write_text(saved, "earlier")
    saved.chmod(0o640)

    def full(handle: int, mode: str) -> NoReturn:
        os.close(handle)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken, pytest.raises(InputError, match="No space left"):
        broken.setattr("chatbot.regression.outputs.os.fdopen", full)
        write_text(saved, "later")
    assert (saved.read_text(encoding="utf-8"), list(tmp_path.iterdir())) == ("earlier", [saved])
    write_text(saved, "later")
    assert saved.read_text(encoding="utf-8") == "later"
    assert saved.stat().st_mode & 0o777 == 0o640


def json_round(result: object) -> object:
    """Lists and tuples are the same in JSON."""
    from pydantic import TypeAdapter

    from chatbot.records import to_json
    from chatbot.regression.results import RunResult

    return TypeAdapter(RunResult).validate_json(to_json(result))


def test_a_comparison_names_what_changed_and_what_differs(tmp_path: Path) -> None:
    changing = "  - id: {}\n    why: w\n    turns:\n" + STATUS
    before = run(tmp_path, PASSING + changing.format("falls", "hi", "x", "contains: x")
                 + changing.format("rises", "hi", "x", "contains: y")
                 + changing.format("gone", "hi", "x", "contains: x"))  # fmt: skip
    after = run(tmp_path, PASSING + changing.format("falls", "hi", "y", "contains: x")
                + changing.format("rises", "hi", "y", "contains: y")
                + changing.format("fresh", "hi", "x", "contains: x"),
                overrides=[("top_k", "7")])  # fmt: skip
    comparison = compare(before, after)
    assert {row.id: row.change for row in comparison.rows} == {
        "knows": "same", "falls": "regressed", "rises": "fixed", "fresh": "new", "gone": "removed",
    }  # fmt: skip
    assert comparison.regressed
    differs = {d.name: (d.before, d.after) for d in comparison.differences}
    assert differs["setting top_k"] == ("20", "7") and "suite" in differs
    assert next(row for row in comparison.rows if row.id == "falls").edited
    figures = {figure.name: figure for figure in comparison.figures}
    assert figures["prompt, longest"].before > 0
    assert {"latency, median", "replies, all", "memory of the process, most"} <= set(figures)
    assert not compare(before, before).regressed and not compare(before, before).differences


def test_cases_that_were_left_out_are_not_called_removed(tmp_path: Path) -> None:
    both = run(tmp_path, PASSING + FAILING)
    one = replace(both, cases=both.cases[:1], left_out=("never-told",))
    assert [row.change for row in compare(both, one).rows] == ["same", "not run"]


class Tags(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_value_of_a_report_is_escaped(tmp_path: Path) -> None:
    turns = STATUS.format(json.dumps(EVIL), json.dumps(EVIL), "contains: nothing of that")
    case = run_one(tmp_path, turns)
    result = run(tmp_path, PASSING)
    evil = replace(case, why=EVIL, reason=EVIL, file=EVIL, id=EVIL, tags=(EVIL,))
    result = replace(
        result,
        cases=(*result.cases, evil),
        fingerprint=replace(result.fingerprint, model=EVIL, settings={EVIL: EVIL}),
    )
    page = html_report(result, compare(run(tmp_path, FAILING), result))
    tags = Tags(page)
    assert not tags.names & {"script", "img", "iframe", "link", "object"}
    assert not {name for name in tags.attributes if name.startswith("on") or name == "src"}
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", page)
    assert "alert(1)" in tags.text
    xml = ElementTree.fromstring(junit_xml(result).partition("?>")[2])
    assert xml.find(".//failure") is not None
    lines = "\n".join(case_lines(evil, Paint(False)))
    assert "\x1b" not in lines.replace(EVIL, "") and "\x07" not in lines.replace(EVIL, "")


def test_the_html_report_shows_the_conversation_and_the_prompt(tmp_path: Path) -> None:
    turns = "      - {user: My cat is Mimi., reply: Fine.}\n"
    turns += STATUS.format("My cat?", "Rex", "contains: Mimi")
    result = run(tmp_path, PASSING)
    page = html_report(replace(result, cases=(run_one(tmp_path, turns),)))
    text = Tags(page).text
    for words in ("My cat is Mimi.", "in the prompt but not used", "helpful assistant", "turn 2"):
        assert words in text
    assert page.count("<svg") >= 2


def test_a_run_on_the_command_line(tmp_path: Path) -> None:
    suite = write(tmp_path, PASSING + FAILING)
    reports = [tmp_path / name for name in ("run.json", "run.html", "run.xml")]
    flags = ("--save", reports[0], "--html", reports[1], "--junit", reports[2])
    outcome = inside("regress", suite, *SCRIPTED, *flags)
    assert outcome.code == 1
    for words in ("passed   knows", "failed   never-told", "never stored", "prompt: system",
                  "1 passed, 1 failed", "suite.yaml:15", "What nobody said"):  # fmt: skip
        assert words in outcome.out
    assert "\x1b" not in outcome.out
    assert all(report.stat().st_size > 300 for report in reports)
    again = inside("regress", suite, *SCRIPTED, "--baseline", reports[0])
    assert again.code == 1 and "the same: 2 cases" in again.out
    assert "The fingerprints are the same." in again.out
    only = inside("regress", suite, *SCRIPTED, "--filter-failing", reports[0])
    assert "never-told" in only.out and "knows" not in only.out
    tagged = inside("regress", suite, *SCRIPTED, "--tags", "quick", "--json")
    assert tagged.code == 0
    [record] = tagged.lines
    assert [case["id"] for case in record["cases"]] == ["knows"]
    assert record["fingerprint"]["model"] == "scripted"


def test_a_regression_is_told_and_fails(tmp_path: Path) -> None:
    turns = STATUS.format("hi", "{behaviour: parameters}", "contains: temperature=0 top")
    case = f"  - id: a\n    why: w\n    turns:\n{turns}"
    suite = write(tmp_path, case)
    base = tmp_path / "base.json"
    assert inside("regress", suite, *SCRIPTED, "--save", base).code == 0
    assert inside("regress", suite, *SCRIPTED, "--filter-failing", base).code == 0
    worse = ("--set", "temperature=0.7", "--save", tmp_path / "new.json")
    outcome = inside("regress", suite, *SCRIPTED, *worse, "--baseline", base)
    assert outcome.code == 1
    assert "differs: setting temperature: 0.0 -> 0.7" in outcome.out
    compared = inside("regress", "compare", base, tmp_path / "new.json", "--json")
    [record] = compared.lines
    assert record["worse"] + record["regressed"] == ["a"]
    assert inside("regress", "compare", base, base).code == 0


def test_a_matrix_is_one_table(tmp_path: Path) -> None:
    turns = STATUS.format("hi", "{behaviour: parameters}", "contains: temperature=0 top")
    suite = write(tmp_path, f"  - id: greedy\n    why: w\n    turns:\n{turns}")
    axes = ("--set", "temperature=0,0.5", "--set", "top_k=3,4")
    outcome = inside("regress", "matrix", suite, *SCRIPTED, *axes)
    assert outcome.code == 1
    [line] = [line for line in outcome.out.splitlines() if line.startswith("greedy")]
    assert line.split()[1:] == ["passed", "passed", "failed", "failed"]
    assert "(3) temperature=0.5 top_k=3" in outcome.out
    [record] = inside("regress", "matrix", suite, *SCRIPTED, *axes, "--json").lines
    assert [cell["set"]["top_k"] for cell in record["cells"]] == ["3", "4", "3", "4"]


def message(number: int, role: str, text: str) -> Message:
    return Message(f"m{number}", role, text)  # type: ignore[arg-type]


def turn(number: int, question: str, reply: str, *citations: Citation) -> Turn:
    user, assistant = (
        message(2 * number, "user", question),
        message(2 * number + 1, "assistant", reply),
    )
    return Turn(f"t{number}", (user,), (assistant,), citations=citations)


def test_a_chat_becomes_a_case_that_passes(tmp_path: Path) -> None:
    chat = Conversation(
        "c",
        title="Orders: no. 1?",
        system_text="Be brief: yes.",
        turns=(
            turn(1, "My order number is 48213.\n- no\n", "Noted: {i} & 'no'."),
            turn(2, "What is my order number?", "Your order number is 48213."),
        ),
    )
    text = case_from(chat)
    path = tmp_path / "recorded.yaml"
    path.write_text(text, encoding="utf-8")
    [case] = load_suites([path]).cases
    assert [step.user for step in case.steps] == [t.question for t in chat.turns]
    assert case.steps[0].reply.text == "Noted: {i} & 'no'." and case.system == "Be brief: yes."
    asserts = [one.text for one in case.steps[1].asserts]
    assert asserts == ["contains: '48213'", "remembers: '48213'"]
    assert inside("regress", path, *SCRIPTED).code == 0


def test_cited_documents_are_named(tmp_path: Path) -> None:
    cited = Citation("1", "handbook.pdf", "d", 3, 0, 20, "15 days of leave")
    chat = Conversation("c", turns=(turn(1, "How much leave?", "15 days.", cited),))
    text = case_from(chat)
    for words in ("handbook.pdf", "cites: handbook.pdf#3", "retrieves: 15 days of leave", "'15'"):
        assert words in text


def test_documents_that_were_read_and_not_cited_are_named() -> None:
    read = Segment("passage", 9, "Slate lasts.", document="roof.md", document_id="r")
    trace = PromptTrace("And the roof?", 20, 100, 10, (read,))
    quiet = turn(1, "And the roof?", "It is old.")
    best = Citation("1", "등대.md", "l", None, 0, 3, "등대는")
    turns = (replace(quiet, trace=trace), replace(quiet, id="t2", best_sentence=best))
    assert "documents:\n  - roof.md\n  - 등대.md\n" in case_from(Conversation("c", turns=turns))


@pytest.mark.parametrize("chat", [Conversation("c"), Conversation("c", turns=(turn(1, " ", "x"),))])
def test_a_chat_without_questions_is_still_a_suite(chat: Conversation, tmp_path: Path) -> None:
    path = tmp_path / "recorded.yaml"
    path.write_text(case_from(chat), encoding="utf-8")
    assert len(load_suites([path]).cases) == 1


def test_a_stored_chat_is_recorded_by_its_title(services: Services, tmp_path: Path) -> None:
    assert isinstance(services.engine, ScriptedEngine)
    chat = services.store.create_conversation(title="Trip")
    list(services.chat.reply(chat.id, "We leave on Monday."))
    output = tmp_path / "trip.yaml"
    arguments = ("regress", "record", "Trip", "-o", output)
    folder = ("--data-dir", services.settings.data_dir)
    assert inside(*arguments, *folder).code == 0
    assert "We leave on Monday." in output.read_text(encoding="utf-8")
    assert inside(*arguments, *folder).code == 2  # nothing is written over
    assert inside("regress", output, *SCRIPTED).code == 0
