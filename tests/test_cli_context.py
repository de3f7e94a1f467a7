"""The context command: one trace a question, counted exactly, without a model."""

from __future__ import annotations

import importlib.util
import json
import unicodedata
from pathlib import Path

import pytest
from cli import KEYWORDS_ONLY, UseScript, assert_trace, inside

from chatbot.engine.scripted import ScriptedEngine


def conversation(tmp_path: Path, turns: int) -> Path:
    messages = [
        {"id": f"{side}{n}", "role": role, "content": f"{side} number {n}. " + "Filler here. " * 9}
        for n in range(turns)
        for side, role in (("question", "user"), ("answer", "assistant"))
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    return path


@pytest.mark.parametrize("limit", [64, 200, 1000])
def test_context_prints_one_trace_per_question(
    limit: int, tmp_path: Path, folder: Path, scripted: UseScript
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
    scripted: UseScript,
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
    scripted: UseScript,
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
    tmp_path: Path, folder: Path, scripted: UseScript
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
    scripted: UseScript,
) -> None:
    scripted([])
    outcome = inside(
        "context", "--question", "Why?", "--system-prompt", "Be brief. " * 99, "--prompt-tokens", 64
    )
    assert outcome.code == 2
    assert "too many" in outcome.err


def test_a_question_that_does_not_fit_does_not_end_the_others(
    tmp_path: Path, scripted: UseScript
) -> None:
    scripted([])
    # Too long for the room, which is too small to say that its middle is left out.
    lines = [{"id": 1, "question": "Why?"}, {"id": 2, "question": "Why? " * 30}, {"question": "x"}]
    questions = tmp_path / "q.jsonl"
    questions.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    asked = ("context", "--questions", questions, "--prompt-tokens", 64)
    asked += ("--system-prompt", "Be brief. " * 9)
    outcome = inside(*asked, "--json")
    assert outcome.code == 2
    first, refused, last = outcome.lines
    assert_trace(first, "Why?", 64)
    assert_trace(last, "x", 64)
    assert refused["id"] == 2 and "too many" in refused["error"]
    assert "too many" in outcome.err
    outcome = inside(*asked)
    assert outcome.code == 2 and "too many" in outcome.err and "too many" not in outcome.out


def test_context_for_people_lists_the_pieces(
    scripted: UseScript,
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


def test_documents_are_named_in_any_form_of_their_syllables(
    folder: Path, tmp_path: Path, scripted: UseScript
) -> None:
    scripted([])
    name = unicodedata.normalize("NFD", "한글이름.txt")
    (folder / name).write_text("바늘은 여기 있다.", encoding="utf-8")
    lines = tmp_path / "q.jsonl"
    for asked in ("한글이름.txt", name):
        lines.write_text(json.dumps({"question": "바늘?", "documents": [asked]}), encoding="utf-8")
        outcome = inside(
            *("context", "--documents", folder / name, "--questions", lines, "--json"),
            *KEYWORDS_ONLY,
        )
        assert outcome.code == 0, outcome.err
        assert "바늘은 여기 있다." in outcome.out
