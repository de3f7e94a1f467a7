"""What the commands print: the JSON of the contracts, and a chat over a pipe."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli import ROOT, Outcome, inside, program

from chatbot.engine.scripted import Script, ScriptedEngine, ScriptedReply
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer

KEYWORDS_ONLY = ("--embedding-model", "none")
SEGMENT_KEYS = {"kind", "tokens", "text"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents, one of them damaged."""
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "tower.txt").write_text("The tower was built in 1915.\n", encoding="utf-8")
    (documents / "등대.txt").write_text("등대의 높이는 16미터이다.\n", encoding="utf-8")
    (documents / "broken.pdf").write_bytes(b"\x00\x01\x02")
    return documents


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Script], ScriptedEngine]:
    """Let commands use a scripted engine, and its tokenizer, in place of the configured model."""

    def use(script: Script) -> ScriptedEngine:
        engine = ScriptedEngine(script)
        monkeypatch.setattr("chatbot.services.load_engine", lambda settings: engine)
        for command in ("context", "ingest"):
            monkeypatch.setattr(
                f"chatbot.commands.{command}.load_model_tokenizer",
                lambda settings, progress: ScriptedTokenizer(),
            )
        return engine

    return use


def conversation(tmp_path: Path, turns: int) -> Path:
    messages = [
        {"id": f"{side}{n}", "role": role, "content": f"{side} number {n}. " + "Filler here. " * 9}
        for n in range(turns)
        for side, role in (("question", "user"), ("answer", "assistant"))
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    return path


def assert_trace(trace: dict[str, Any], question: str, limit: int) -> None:
    """The shape and the sums of the contract."""
    assert trace["question"] == question
    assert trace["prompt_tokens"] <= trace["limit_tokens"] == limit
    assert trace["reply_tokens"] > 0 and trace["reused_tokens"] >= 0
    assert sum(s["tokens"] for s in trace["segments"]) == trace["prompt_tokens"]
    assert all(set(s) >= SEGMENT_KEYS for s in trace["segments"])
    assert all(set(d) >= SEGMENT_KEYS | {"reason"} for d in trace["dropped"])
    assert not [v for s in trace["segments"] for v in s.values() if v is None or v == []]
    kinds = [s["kind"] for s in trace["segments"]]
    assert kinds[0] == "system" and kinds[-1] == "question"


# context


@pytest.mark.parametrize("limit", [64, 200, 1000])
def test_context_prints_one_trace_per_question(
    limit: int, tmp_path: Path, folder: Path, scripted: Callable[[Script], ScriptedEngine]
) -> None:
    engine = scripted([])
    questions = tmp_path / "questions.jsonl"
    lines = [
        {"id": 7, "question": "When was the tower built?"},
        {"question": "높이는?", "documents": ["등대.txt"]},
        {"id": "c", "question": "And now?", "documents": []},
    ]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    questions.write_text(f"\n{text}\n\n", encoding="utf-8")
    outcome = inside(
        *("context", "--conversation", conversation(tmp_path, 12), "--documents", folder),
        *("--questions", questions, "--prompt-tokens", limit, "--system-prompt", "Be brief."),
        *("--json", *KEYWORDS_ONLY),
    )
    assert outcome.code == 0, outcome.err
    assert [line.get("id") for line in outcome.lines] == [7, None, "c"]
    for line, given in zip(outcome.lines, lines, strict=True):
        assert_trace(line, str(given["question"]), limit)
    assert "broken.pdf" in outcome.err
    documents = [
        {s.get("document") for s in line["segments"] if s["kind"] == "passage"}
        for line in outcome.lines
    ]
    assert documents[1] <= {"등대.txt"} and documents[2] == set()
    assert engine.calls == []


@pytest.mark.parametrize(
    ("flags", "summary"),
    [
        pytest.param((), True, id="extractive_unless_told_otherwise"),
        pytest.param(("--summary", "off"), False, id="off"),
        pytest.param(("--summary", "extractive"), True, id="extractive"),
    ],
)
def test_context_folds_an_imported_chat_without_a_model(
    flags: tuple[str, ...],
    summary: bool,
    tmp_path: Path,
    scripted: Callable[[Script], ScriptedEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted([])

    def never(settings: object) -> ScriptedEngine:
        raise AssertionError("no model is needed")

    monkeypatch.setattr("chatbot.commands.imported.load_engine", never)
    outcome = inside(
        *("context", "--conversation", conversation(tmp_path, 40), "--question", "Number 3?"),
        *("--prompt-tokens", 700, "--json", *flags),
    )
    assert outcome.code == 0, outcome.err
    (trace,) = outcome.lines
    assert_trace(trace, "Number 3?", 700)
    assert ("summary" in [s["kind"] for s in trace["segments"]]) is summary


def test_context_asks_the_model_for_a_summary_when_told_to(
    tmp_path: Path,
    scripted: Callable[[Script], ScriptedEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = scripted(lambda prompt, ids: "The user asked about numbers and filler.")
    monkeypatch.setattr("chatbot.commands.imported.load_engine", lambda settings: engine)
    outcome = inside(
        *("context", "--conversation", conversation(tmp_path, 40), "--question", "Number 3?"),
        *("--prompt-tokens", 700, "--json", "--summary", "model"),
    )
    assert outcome.code == 0, outcome.err
    assert engine.calls


def test_context_names_a_document_that_was_not_given(
    tmp_path: Path, folder: Path, scripted: Callable[[Script], ScriptedEngine]
) -> None:
    scripted([])
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"question": "x", "documents": ["other.txt"]}', encoding="utf-8")
    outcome = inside(
        "context", "--documents", folder, "--questions", questions, "--json", *KEYWORDS_ONLY
    )
    assert outcome.code == 2
    assert "other.txt" in outcome.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        pytest.param('{"question": "ok"}\n{"question": 1}', "line 2", id="no_text"),
        pytest.param('{"question": "ok"}\n\n{', "line 3", id="no_json"),
        pytest.param('{"question": "x", "documents": "a.txt"}', "documents", id="no_list"),
        pytest.param("\n\n", "no question", id="empty"),
    ],
)
def test_a_wrong_line_of_questions_is_named(content: str, named: str, tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text(content, encoding="utf-8")
    outcome = inside("context", "--questions", questions)
    assert outcome.code == 2 and named in outcome.err
    assert outcome.err.count("\n") == 1


def test_required_parts_that_do_not_fit_say_by_how_much(
    scripted: Callable[[Script], ScriptedEngine],
) -> None:
    scripted([])
    outcome = inside(
        "context", "--question", "Why?", "--system-prompt", "Be brief. " * 99, "--prompt-tokens", 64
    )
    assert outcome.code == 2
    assert "too many" in outcome.err


def test_context_for_people_lists_the_pieces(
    scripted: Callable[[Script], ScriptedEngine],
) -> None:
    scripted([])
    outcome = inside("context", "--question", "Why so?")
    assert outcome.code == 0
    assert "Why so?" in outcome.out and " system " in outcome.out


@pytest.mark.parametrize("question", ["Hello <|eot_id|> there", "안녕하세요 <|im_end|> 👩‍👩‍👧‍👦"])
def test_context_counts_in_the_vocabulary_of_llama_3(question: str) -> None:
    spec = importlib.util.find_spec("llama_models")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the package llama-models (requirements-dev-nodeps.txt)")
    path = Path(next(iter(spec.submodule_search_locations))) / "llama3" / "tokenizer.model"
    outcome = inside("context", "--question", question, "--tokenizer", path, "--json")
    assert outcome.code == 0, outcome.err
    (trace,) = outcome.lines
    assert_trace(trace, question, trace["limit_tokens"])
    assert trace["limit_tokens"] + trace["reply_tokens"] == 8192


# ask


def test_ask_prints_the_answer_with_its_sources(
    folder: Path, tmp_path: Path, scripted: Callable[[Script], ScriptedEngine]
) -> None:
    scripted(["The tower was built in 1915 [1]."])
    outcome = inside(
        *("ask", "When was the tower built?", "--documents", folder / "tower.txt", "--json"),
        *("--data-dir", tmp_path / "untouched", *KEYWORDS_ONLY),
    )
    assert outcome.code == 0, outcome.err
    (result,) = outcome.lines
    assert result["answer"] == "The tower was built in 1915 [1]."
    (citation,) = result["citations"]
    assert set(citation) == {"label", "document", "page", "start", "end", "quote"}
    assert citation["document"] == "tower.txt"
    assert citation["quote"] == "The tower was built in 1915."
    assert_trace(result["trace"], "When was the tower built?", result["trace"]["limit_tokens"])
    assert result["usage"]["prompt_tokens"] == result["trace"]["prompt_tokens"]
    assert result["finish"] == "stop"
    assert not (tmp_path / "untouched").exists()


def test_ask_streams_the_answer_for_people(
    folder: Path, scripted: Callable[[Script], ScriptedEngine]
) -> None:
    scripted(["1915년에 세워졌습니다."])
    outcome = inside("ask", "언제?", "--documents", folder / "tower.txt", *KEYWORDS_ONLY)
    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == "1915년에 세워졌습니다."


def test_a_failed_reply_is_exit_code_1_and_keeps_what_there_is(
    scripted: Callable[[Script], ScriptedEngine],
) -> None:
    scripted([ScriptedReply("One two three four", fail_after_tokens=2)])
    outcome = inside("ask", "Count.", "--json", *KEYWORDS_ONLY)
    assert outcome.code == 1
    (result,) = outcome.lines
    assert result["finish"] == "error" and result["answer"]
    assert outcome.err.splitlines()[-1].startswith("chatbot: ")


def test_documents_that_cannot_be_read_are_exit_code_1(
    folder: Path, scripted: Callable[[Script], ScriptedEngine]
) -> None:
    scripted([])
    outcome = inside("ask", "x", "--documents", folder / "broken.pdf", *KEYWORDS_ONLY)
    assert outcome.code == 1
    assert "broken.pdf" in outcome.err and "None of the documents" in outcome.err


# ingest


def test_ingest_prints_one_line_per_file(
    folder: Path, tmp_path: Path, scripted: Callable[[Script], ScriptedEngine]
) -> None:
    scripted([])
    (folder / "blank.txt").write_text("  \n", encoding="utf-8")
    command = ("ingest", folder, "--json", "--data-dir", tmp_path / "data", *KEYWORDS_ONLY)
    for statuses in (
        ("empty", "error", "indexed", "indexed"),
        ("empty", "error", *["unchanged"] * 2),
    ):
        outcome = inside(*command)
        assert outcome.code == 0, outcome.err
        files = {line["file"]: line for line in outcome.lines}
        names = ("blank.txt", "broken.pdf", "tower.txt", "등대.txt")
        assert tuple(files[name]["status"] for name in names) == statuses
        keys = {"file", "status", "pages", "chunks", "removed_lines", "message"}
        assert all(set(line) == keys for line in outcome.lines)
        assert files["broken.pdf"]["message"]
    assert inside("ingest", folder / "broken.pdf", *command[2:]).code == 1
    listed = inside("ingest", "--list", *command[2:])
    assert {line["name"] for line in listed.lines} == {"tower.txt", "등대.txt"}
    assert inside("ingest", "--remove", "tower.txt", *command[2:]).code == 0
    assert [line["name"] for line in inside("ingest", "--list", *command[2:]).lines] == ["등대.txt"]
    assert inside("ingest", "--remove", "tower.txt", *command[2:]).code == 2


def test_a_missing_file_among_others_has_its_own_line(
    folder: Path, tmp_path: Path, scripted: Callable[[Script], ScriptedEngine]
) -> None:
    scripted([])
    outcome = inside(
        *("ingest", folder / "tower.txt", folder / "none.txt", "--json"),
        *("--data-dir", tmp_path / "data", *KEYWORDS_ONLY),
    )
    assert outcome.code == 0
    assert [line["status"] for line in outcome.lines] == ["indexed", "error"]


# plan


def test_plan_needs_no_weights_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    model = "meta-llama/Meta-Llama-3-8B-Instruct"
    outcome = inside("plan", "--model", model, "--device-memory", "12GiB", "--json")
    assert outcome.code == 0, outcome.err
    (plan,) = outcome.lines
    assert plan["chosen"]["fits"] and plan["chosen"]["quantization"] == "int8"
    assert "It fits." in inside("plan", "--model", model, "--device-memory", "12GiB").out


# chat


@pytest.fixture
def piped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scripted: Callable[[Script], ScriptedEngine]
) -> Callable[..., Outcome]:
    """Run `chat` with these lines on its input."""
    scripted(lambda prompt, ids: "An answer.")

    def run(*lines: object) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return inside("chat", "--data-dir", tmp_path / "data", *KEYWORDS_ONLY)

    return run


def test_each_line_of_a_pipe_is_a_question(piped: Callable[..., Outcome]) -> None:
    outcome = piped("First?", "", "둘째?", "//third?", "/list")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("An answer.") == 3
    assert "First?  (3 turns)" in outcome.out


def test_the_commands_of_the_chat(piped: Callable[..., Outcome], folder: Path) -> None:
    outcome = piped(
        *("/help", "Hello?", "/retry", "/context", "/context And then?"),
        *(f"/add '{folder / 'tower.txt'}'", "/documents", "/new", "/list", "/open 1", "/quit"),
        "never asked",
    )
    assert outcome.code == 0, outcome.err
    assert "/retry " in outcome.out
    asked, again, in_a_prompt, opened = 1, 1, 1, 1
    assert outcome.out.count("An answer.") == asked + again + in_a_prompt + opened
    assert "tokens for: Hello?" in outcome.out and "tokens for: And then?" in outcome.out
    assert "tower.txt  (1 chunks)" in outcome.out
    assert "never asked" not in outcome.out


@pytest.mark.parametrize(
    ("line", "named"),
    [
        pytest.param("/foo", "/help", id="unknown"),
        pytest.param("/retry", "no question", id="nothing_to_retry"),
        pytest.param("/context", "no reply yet", id="no_trace"),
        pytest.param("/open 5", "/list", id="no_such_conversation"),
        pytest.param("/open ²", "/list", id="no_number"),
        pytest.param("/add", "/add", id="nothing_to_add"),
        pytest.param("/add none.txt", "none.txt", id="missing_file"),
        pytest.param("/add 'open", "/add", id="open_quote"),
    ],
)
def test_a_wrong_command_is_one_sentence_and_the_chat_goes_on(
    line: str, named: str, piped: Callable[..., Outcome]
) -> None:
    outcome = piped(line, "Hello?")
    assert outcome.code == 1
    assert outcome.out == "An answer.\n"
    assert named in outcome.err and "Traceback" not in outcome.err


# the real thing


@pytest.mark.model
@pytest.mark.slow
def test_a_question_to_the_demo_model_leaves_only_json_on_stdout(
    folder: Path, model_cache: Path
) -> None:
    outcome = program(
        *("ask", "When was the tower built?", "--documents", folder / "tower.txt", "--json"),
        *("--cache-dir", model_cache, "--reply-tokens", 16),
    )
    assert outcome.code == 0, outcome.err
    (result,) = outcome.lines
    assert result["answer"] and result["best_sentence"]["document"] == "tower.txt"
    known = ("The model is loading", "Reading the weights", "The documents are in")
    assert all(line.startswith(known) for line in outcome.err.splitlines()), outcome.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_serve_opens_the_page_and_ends_tidily(tmp_path: Path, model_cache: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(ROOT / "app.py"), "--port", str(port)]
    command += ["--data-dir", str(tmp_path), "--cache-dir", str(model_cache)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            deadline = time.monotonic() + 60
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.2)
        finally:
            process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=30)[0].decode()
    assert f"http://127.0.0.1:{port}/" in output
    assert "Traceback" not in output
    assert process.returncode in (0, 130)
