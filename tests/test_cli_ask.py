"""The commands ask, ingest and plan: the JSON of their contracts."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from cli import KEYWORDS_ONLY, UseScript, assert_trace, inside

from chatbot.engine.scripted import ScriptedReply
from chatbot.store import Store
from chatbot.upload_claims import claim_uploads
from retrieval.claims import Claims


def test_ask_prints_the_answer_with_its_sources(
    folder: Path, tmp_path: Path, scripted: UseScript
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


def test_ask_streams_the_answer_for_people(folder: Path, scripted: UseScript) -> None:
    scripted(["1915년에 세워졌습니다."])
    outcome = inside("ask", "언제?", "--documents", folder / "tower.txt", *KEYWORDS_ONLY)
    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == "1915년에 세워졌습니다."
    assert "small English demo model" in outcome.err


def test_ask_says_that_a_reply_may_go_on(folder: Path, scripted: UseScript) -> None:
    scripted(["word " * 200])
    asked = ("ask", "What is it?", "--documents", folder / "tower.txt", *KEYWORDS_ONLY)
    cut, whole = (inside(*asked, "--reply-tokens", count) for count in ("20", "300"))
    assert "the reply reached --reply-tokens" in cut.err
    assert "the reply reached --reply-tokens" not in whole.err


def test_unsupported_statements_are_one_line(folder: Path, scripted: UseScript) -> None:
    scripted(["The moon is a large cheese. Seven whales own the harbour bank."])
    outcome = inside(
        *("ask", "When was the tower built?", "--documents", folder / "tower.txt"),
        *("--model", "another", *KEYWORDS_ONLY),
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("not found in the documents") == 1
    assert "2 statements are not found in the documents; --json lists them." in outcome.out
    assert "demo model" not in outcome.err


def test_a_failed_reply_is_exit_code_1_and_keeps_what_there_is(
    scripted: UseScript,
) -> None:
    scripted([ScriptedReply("One two three four", fail_after_tokens=2)])
    outcome = inside("ask", "Count.", "--json", *KEYWORDS_ONLY)
    assert outcome.code == 1
    (result,) = outcome.lines
    assert result["finish"] == "error" and result["answer"]
    assert outcome.err.splitlines()[-1].startswith("chatbot: ")


def test_documents_that_cannot_be_read_are_exit_code_1(folder: Path, scripted: UseScript) -> None:
    scripted([])
    outcome = inside("ask", "x", "--documents", folder / "broken.pdf", *KEYWORDS_ONLY)
    assert outcome.code == 1
    assert "broken.pdf" in outcome.err and "None of the documents" in outcome.err


def test_ingest_prints_one_line_per_file(folder: Path, tmp_path: Path, scripted: UseScript) -> None:
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
        keys = {"file", "status", "pages", "chunks", "removed_lines", "message", "removed"}
        assert all(set(line) == keys for line in outcome.lines)
        assert files["broken.pdf"]["message"]
    assert inside("ingest", folder / "broken.pdf", *command[2:]).code == 1
    listed = inside("ingest", "--list", *command[2:])
    assert {line["name"] for line in listed.lines} == {"tower.txt", "등대.txt"}
    with closing(Store(tmp_path / "data" / "chats.db")) as store:
        chat = store.create_conversation().id
        store.set_documents(chat, [line["id"] for line in listed.lines])
        assert inside("ingest", "--remove", "tower.txt", *command[2:]).code == 0
        kept = [line["id"] for line in listed.lines if line["name"] != "tower.txt"]
        assert list(store.load(chat).document_ids) == kept
    assert [line["name"] for line in inside("ingest", "--list", *command[2:]).lines] == ["등대.txt"]
    assert inside("ingest", "--remove", "tower.txt", *command[2:]).code == 2


def test_ingest_waits_for_another_program_that_reads_the_same_file(
    folder: Path, tmp_path: Path, scripted: UseScript
) -> None:
    scripted([])
    data = tmp_path / "data"
    data.mkdir()
    command = ("ingest", folder / "tower.txt", "--json", "--data-dir", data, *KEYWORDS_ONLY)
    with (
        closing(Store(data / "chats.db")) as store,
        closing(Claims(claim_uploads(store, data / "library"))) as claims,
        ThreadPoolExecutor(1) as pool,
    ):
        assert claims.take("tower.txt")
        reading = pool.submit(inside, *command)
        time.sleep(1.0)
        was_waiting = not reading.done()
        claims.let_go("tower.txt")
        assert [line["status"] for line in reading.result(60).lines] == ["indexed"]
        assert was_waiting


def test_ingest_goes_on_where_the_chats_are_away(
    folder: Path, tmp_path: Path, scripted: UseScript
) -> None:
    scripted([])
    outcome = inside(
        *("ingest", folder / "tower.txt", "--data-dir", tmp_path / "data", *KEYWORDS_ONLY),
        *("--database-url", "postgresql://anna:SECRET@127.0.0.1:1/chats"),
    )
    assert outcome.code == 0 and outcome.out.startswith("indexed")
    assert "Other programs are not told" in outcome.err and "SECRET" not in outcome.err


def test_a_missing_file_among_others_has_its_own_line(
    folder: Path, tmp_path: Path, scripted: UseScript
) -> None:
    scripted([])
    outcome = inside(
        *("ingest", folder / "tower.txt", folder / "none.txt", "--json"),
        *("--data-dir", tmp_path / "data", *KEYWORDS_ONLY),
    )
    assert outcome.code == 0
    assert [line["status"] for line in outcome.lines] == ["indexed", "error"]
    alone = inside("ingest", folder / "none.txt", "--data-dir", tmp_path / "data", *KEYWORDS_ONLY)
    assert alone.code == 2
    assert alone.err == f"chatbot: {outcome.lines[1]['message']}\n"


def test_an_empty_library_and_single_things_are_said_so(
    folder: Path, tmp_path: Path, scripted: UseScript
) -> None:
    scripted([])
    own = ("--data-dir", tmp_path / "data", *KEYWORDS_ONLY)
    listed = inside("ingest", "--list", *own)
    assert (listed.code, listed.out) == (0, "")
    assert "The library is empty" in listed.err
    assert "1 chunk." in inside("ingest", folder / "tower.txt", *own).out
    assert "(1 chunk)" in inside("ingest", "--list", *own).out


def test_plan_needs_no_weights_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    model = "meta-llama/Meta-Llama-3-8B-Instruct"
    outcome = inside("plan", "--model", model, "--device-memory", "12GiB", "--json")
    assert outcome.code == 0, outcome.err
    (plan,) = outcome.lines
    assert plan["chosen"]["fits"] and plan["chosen"]["quantization"] == "int8"
    assert "It fits." in inside("plan", "--model", model, "--device-memory", "12GiB").out
