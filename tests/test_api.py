"""The API by OpenAI's own client: replies, streams, conversations, what is refused, who goes."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

openai = pytest.importorskip("openai", reason="needs the packages of requirements-team.txt")

from tests.api_rig import Api, until  # noqa: E402

HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    running = Api(tmp_path_factory.mktemp("api"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[Any]:
    """OpenAI's client, which tries nothing twice."""
    with openai.OpenAI(base_url=api.base_url, api_key="none", max_retries=0) as made:
        yield made


def ask(client: Any, *messages: dict[str, Any], **more: Any) -> Any:
    return client.chat.completions.create(
        model=more.pop("model", "scripted"), messages=list(messages) or HELLO, **more
    )


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def bot(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def post(api: Api, body: bytes | dict[str, Any], **headers: str) -> httpx.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **headers}
    return api.plain.post("chat/completions", content=data, headers=given)


def refusal(answer: httpx.Response, status: int, code: str | None) -> str:
    """The sentence of an error that must have OpenAI's shape."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["code"] == code
    return str(error["message"])


def test_a_reply_has_usage_and_the_trace_of_its_prompt(client: Any) -> None:
    reply = ask(client)
    assert reply.choices[0].message.content == "안녕하세요. A plain reply 👍."
    assert reply.choices[0].finish_reason == "stop" and reply.model == "scripted"
    trace = reply.chatbot["trace"]
    assert reply.usage.prompt_tokens == trace["prompt_tokens"]
    assert reply.usage.prompt_tokens == sum(piece["tokens"] for piece in trace["segments"])
    assert reply.usage.completion_tokens > 0 and reply.chatbot["conversation_id"] is None
    assert "trace" not in ask(client, metadata={"trace": "off"}).chatbot


def test_a_stream_comes_in_pieces_with_the_trace_and_the_usage_in_the_last(client: Any) -> None:
    chunks = list(
        ask(client, user("wish:long"), stream=True, stream_options={"include_usage": True},
            max_tokens=40)
    )  # fmt: skip
    texts = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert "".join(texts).startswith("word0 word1") and chunks[0].choices[0].delta.role
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"
    assert all(c.usage is None for c in chunks[:-1]) and not chunks[-1].choices
    assert chunks[-1].usage.completion_tokens == 40
    assert chunks[-1].chatbot["trace"]["prompt_tokens"] == chunks[-1].usage.prompt_tokens
    plain = list(ask(client, stream=True))
    assert plain[-1].chatbot["trace"] and all(c.usage is None for c in plain)


def test_without_a_conversation_nothing_is_stored_and_the_messages_are_the_chat(
    api: Api, client: Any
) -> None:
    before = api.services.store.list_conversations()
    reply = ask(
        client,
        {"role": "developer", "content": "Be brief."},
        user("My dog is called Bello."),
        bot("Noted."),
        user("Hello again"),
    )
    pieces = [(s["kind"], s["text"]) for s in reply.chatbot["trace"]["segments"]]
    assert pieces[0] == ("system", "Be brief.")
    assert ("turn", "My dog is called Bello.\n\nNoted.") in pieces
    assert api.services.store.list_conversations() == before


def test_what_does_not_fit_is_left_out_and_said_and_found_again(client: Any) -> None:
    talk = [user("The code of the safe is 4711."), bot("Noted.")]
    for number in range(60):
        talk += [user(f"Tell me about town {number} " + "and its streets " * 12), bot("It is old.")]
    reply = ask(client, *talk, user("What was the code of the safe?"))
    trace = reply.chatbot["trace"]
    assert trace["dropped"] and trace["prompt_tokens"] <= trace["limit_tokens"]
    recalled = [s["text"] for s in trace["segments"] if s["kind"] == "recalled"]
    assert any("4711" in text for text in recalled)


def test_the_same_chat_one_turn_longer_uses_the_cache_again(client: Any) -> None:
    first = ask(client, user("A question about caches"))
    again = ask(
        client,
        user("A question about caches"),
        bot(first.choices[0].message.content),
        user("And another"),
    )
    assert again.usage.prompt_tokens_details.cached_tokens > 0.5 * first.usage.prompt_tokens


def test_a_conversation_goes_on_by_its_id_and_only_the_last_message_is_new(
    api: Api, client: Any
) -> None:
    first = ask(client, user("One"), metadata={"conversation_id": "talk-1"})
    assert first.chatbot["conversation_id"] == "talk-1"
    raw = client.chat.completions.with_raw_response.create(
        model="default", messages=[user("Two")], extra_headers={"X-Conversation-Id": "talk-1"}
    )
    assert raw.headers["x-conversation-id"] == "talk-1"
    stored = api.services.store.load("talk-1")
    assert [turn.question for turn in stored.turns] == ["One", "Two"]
    reply = ask(
        client, user("One"), bot(stored.turns[0].reply), user("Two"), bot(stored.turns[1].reply),
        user("Three"), metadata={"conversation_id": "talk-1", "history": "strict"},
    )  # fmt: skip
    assert not [n for n in reply.chatbot["notices"] if n["code"] == "history_differs"]
    assert len(api.services.store.load("talk-1").turns) == 3
    assert reply.usage.prompt_tokens_details.cached_tokens > 0


def test_messages_that_differ_from_the_stored_ones_do_not_count_and_that_is_said(
    api: Api, client: Any
) -> None:
    ask(client, user("I like tea."), metadata={"conversation_id": "talk-2"})
    sent = [user("I like coffee."), bot("Fine."), user("What do I like?")]
    reply = ask(client, *sent, metadata={"conversation_id": "talk-2"})
    (notice,) = [n for n in reply.chatbot["notices"] if n["code"] == "history_differs"]
    assert notice["values"] == {"message": 1}
    assert "coffee" not in json.dumps(reply.chatbot["trace"]["segments"])
    with pytest.raises(openai.ConflictError) as refused:
        ask(client, *sent, metadata={"conversation_id": "talk-2", "history": "strict"})
    assert refused.value.code == "history_differs"
    assert "nothing was stored" in str(refused.value) and "was taken" not in str(refused.value)
    assert len(api.services.store.load("talk-2").turns) == 2


def test_a_new_conversation_begins_with_what_was_said_before_and_has_its_system_text(
    api: Api, client: Any
) -> None:
    system = {"role": "system", "content": "Answer like a pirate."}
    reply = ask(
        client, system, user("Ahoy"), bot("Ahoy!"), user("Go on"),
        metadata={"conversation_id": "new"},
    )  # fmt: skip
    name = reply.chatbot["conversation_id"]
    stored = api.services.store.load(name)
    assert [t.question for t in stored.turns] == ["Ahoy", "Go on"]
    assert stored.system_text == "Answer like a pirate."
    changed = {"role": "system", "content": "Answer like a judge."}
    later = ask(client, changed, user("And now?"), metadata={"conversation_id": name})
    assert api.services.store.load(name).system_text == "Answer like a judge."
    assert next(n["code"] for n in later.chatbot["notices"]) == "system_replaced"


def test_a_question_sent_again_after_it_failed_takes_the_place_of_the_failed_one(
    tmp_path: Path,
) -> None:
    from chatbot.engine.scripted import ScriptedEngine
    from chatbot.errors import EngineError

    replies = [EngineError("The engine broke down."), "Better."]
    api = Api(tmp_path, engine=lambda: ScriptedEngine(replies))
    with openai.OpenAI(base_url=api.base_url, api_key="x", max_retries=0) as client:
        with pytest.raises(openai.InternalServerError) as failed:
            ask(client, user("Why?"), metadata={"conversation_id": "c"})
        assert failed.value.code == "reply_failed" and "broke down" in failed.value.message
        ask(client, user("Why?"), metadata={"conversation_id": "c"})
    assert [t.reply for t in api.services.store.load("c").turns] == ["Better."]
    api.close()


def test_files_are_read_in_the_background_and_used_where_they_are_named(
    api: Api, client: Any
) -> None:
    text = b"The lighthouse of Carrick was built in 1898. Its lamp is 16 metres high."
    sent = client.files.create(file=("carrick.txt", text), purpose="user_data")
    assert sent.object == "file" and sent.filename == "carrick.txt" and sent.bytes == len(text)
    file = client.files.wait_for_processing(sent.id, poll_interval=0.05)
    assert file.status == "processed" and file.id in [f.id for f in client.files.list()]
    asked = user("How high is the lamp of the lighthouse?")
    reply = ask(client, asked, metadata={"file_ids": file.id})
    assert reply.chatbot["citations"][0]["document"] == "carrick.txt"
    assert not ask(client, asked).chatbot["citations"]
    part = {"type": "file", "file": {"file_id": file.id}}
    message = {"role": "user", "content": [{"type": "text", "text": asked["content"]}, part]}
    first = ask(client, message, metadata={"conversation_id": "with-file"})
    later = ask(client, asked, metadata={"conversation_id": "with-file"})
    assert first.chatbot["citations"] and later.chatbot["citations"], "it stays switched on"
    off = ask(client, asked, metadata={"conversation_id": "with-file", "file_ids": ""})
    assert not off.chatbot["citations"]
    again = client.files.create(file=("carrick.txt", b"Nothing is left."), purpose="assistants")
    assert again.id == file.id, "the same name is the same file, in its new version"
    client.files.wait_for_processing(again.id, poll_interval=0.05)
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)
    with pytest.raises(openai.NotFoundError) as missing:
        ask(client, asked, metadata={"file_ids": file.id})
    assert missing.value.code == "file_not_found" and missing.value.param == "metadata.file_ids"


def test_the_files_of_an_archive_are_read_and_its_id_stands_for_them(api: Api, client: Any) -> None:
    def archive(**files: bytes) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as target:
            for name, content in files.items():
                target.writestr(name.replace("_", "."), content)
        return made.getvalue()

    content = archive(
        carrick_txt=b"The lighthouse of Carrick: its lamp is 16 metres high.",
        empty_txt=b"", broken_pdf=b"\x00\x01", tea_md=b"# Tea\n\nTea is drunk at four.",
    )  # fmt: skip
    sent = client.files.create(file=("Notes.zip", content), purpose="user_data")
    file = client.files.wait_for_processing(sent.id, poll_interval=0.05)
    assert (file.id, file.filename, file.status) == (sent.id, "Notes.zip", "processed")
    listed = {f.filename: f.id for f in client.files.list() if f.filename.startswith("Notes")}
    assert set(listed) == {"Notes.zip/carrick.txt", "Notes.zip/tea.md"}
    asked = user("How high is the lamp of the lighthouse?")
    reply = ask(client, asked, metadata={"file_ids": f"{file.id},{listed['Notes.zip/tea.md']}"})
    assert reply.chatbot["citations"][0]["document"] == "Notes.zip/carrick.txt"
    client.files.delete(listed["Notes.zip/carrick.txt"])
    assert not ask(client, asked, metadata={"file_ids": file.id}).chatbot["citations"]
    client.files.delete(file.id)
    assert not [d.name for d in api.services.library.documents() if d.name.startswith("Notes")]
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)
    bad = client.files.create(file=("bad.zip", archive(broken_pdf=b"\x00")), purpose="user_data")
    bad = client.files.wait_for_processing(bad.id, poll_interval=0.05)
    assert bad.status == "error" and bad.status_details
    client.files.delete(bad.id)


def test_a_file_that_cannot_be_read_says_why(client: Any) -> None:
    sent = client.files.create(file=("broken.pdf", b"\x00\x01"), purpose="user_data")
    file = client.files.wait_for_processing(sent.id, poll_interval=0.05)
    assert file.status == "error" and file.status_details
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, metadata={"file_ids": file.id})
    assert file.status_details in refused.value.message
    client.files.delete(file.id)


def test_fifty_calls_at_once_are_all_answered(client: Any) -> None:
    def call(number: int) -> str:
        more: dict[str, Any] = (
            {"metadata": {"conversation_id": f"p-{number}"}} if number % 2 else {}
        )
        return str(ask(client, user(f"Call {number}"), **more).choices[0].message.content)

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(call, range(50))) == {"안녕하세요. A plain reply 👍."}


def test_a_message_longer_than_the_window_is_answered_and_that_is_said(client: Any) -> None:
    long = "The tower of Pisa leans. " * 2000
    reply = ask(client, user(long))
    assert "question_shortened" in [n["code"] for n in reply.chatbot["notices"]]
    kept = ask(client, user(long), metadata={"conversation_id": "long"})
    assert "question_attached" in [n["code"] for n in kept.chatbot["notices"]]
    system = {"role": "system", "content": "word " * 4000}
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, system, user("Hi"))
    assert refused.value.code == "context_length_exceeded" and refused.value.param == "messages"


@pytest.mark.parametrize("stream", [True, False])
def test_who_goes_away_frees_the_engine(api: Api, client: Any, stream: bool) -> None:
    name = f"gone-{stream}"
    body = {
        "model": "scripted", "stream": stream, "messages": [user("wish:stall")],
        "metadata": {"conversation_id": name},
    }  # fmt: skip
    if stream:
        with api.plain.stream("POST", "chat/completions", json=body) as answer:
            next(answer.iter_lines())
    else:
        with pytest.raises(httpx.ReadTimeout):
            api.plain.post("chat/completions", json=body, timeout=1.0)
    until(lambda: not api.services.chat.is_running(name), "the end of the reply")
    (turn,) = api.services.store.load(name).turns
    assert turn.finish == "cancelled"
    assert ask(client).choices[0].message.content


def test_a_conversation_that_is_being_answered_is_refused_meanwhile(api: Api, client: Any) -> None:
    named = {"conversation_id": "busy"}
    with ask(client, user("wish:stall"), stream=True, metadata=named) as stream:
        next(iter(stream))
        with pytest.raises(openai.ConflictError) as refused:
            client.chat.completions.create(
                model="default",
                messages=[{"role": "system", "content": "Sing."}, user("And now?")],
                metadata=named,
            )
        assert refused.value.code == "conversation_busy"
        assert refused.value.response.headers["retry-after"]
        # What is refused changes nothing.
        assert api.services.store.load("busy").system_text is None
    until(lambda: not api.services.chat.is_running("busy"), "the end of the reply")


def test_a_refused_request_leaves_no_trace(api: Api, client: Any) -> None:
    named = {"conversation_id": "refused"}
    ask(client, user("first"), metadata=named)
    store, library = api.services.store, api.services.library
    before, n_chats = store.load("refused"), len(store.list_conversations())
    n_documents = len(library.documents())
    huge = {"role": "system", "content": "word " * 9000}
    for name in ("refused", "refused-new", "new"):
        with pytest.raises(openai.BadRequestError):
            ask(client, huge, user("second"), metadata={"conversation_id": name, "file_ids": ""})
    assert store.load("refused") == before and len(store.list_conversations()) == n_chats
    assert len(library.documents()) == n_documents
    ask(client, user("third"), metadata=named)
    ask(client, {"role": "system", "content": "Sing."}, user("fourth"), metadata=named)
    now = store.load("refused")
    assert [turn.question for turn in now.turns] == ["first", "third", "fourth"]
    assert now.system_text == "Sing."


def test_what_the_models_server_refuses_as_too_long_leaves_no_trace(api: Api, client: Any) -> None:
    store, library = api.services.store, api.services.library
    ask(client, user("first"), metadata={"conversation_id": "server"})
    store.create_conversation(conversation_id="server-empty")
    before, n_chats = store.load("server"), len(store.list_conversations())
    n_documents = len(library.documents())
    short, long = "wish:too long", "The tower leans. " * 600 + "wish:too long"
    for name, question, is_stream in (
        ("server", short, True),
        ("server", long, False),
        ("server-new", short, False),
        ("server-empty", short, True),
    ):
        sent = ({"role": "system", "content": "Sing."}, user(question))
        with pytest.raises(openai.APIError) as refused:
            list(ask(client, *sent, stream=is_stream, metadata={"conversation_id": name}))
        assert refused.value.code == "context_length_exceeded"
        until(lambda: not api.services.chat.is_running(name), "the end")  # noqa: B023
    for name, turns, title in (("server", before.turns, before.title), ("server-empty", (), "")):
        now = store.load(name)
        assert (now.turns, now.title) == (turns, title)
        assert now.system_text is None and now.document_ids == ()
    assert len(store.list_conversations()) == n_chats
    assert len(library.documents()) == n_documents


@pytest.mark.parametrize("earlier", [(), (user("Good day"), bot("Hello"))])
def test_first_requests_at_once_in_a_new_conversation_are_told_to_wait(
    api: Api, client: Any, earlier: tuple[dict[str, str], ...]
) -> None:
    name = f"at-once-{len(earlier)}"
    body = {
        "model": "default", "max_tokens": 10, "metadata": {"conversation_id": name},
        "messages": [*earlier, user("wish:slow")],
    }  # fmt: skip
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: post(api, body), range(6)))
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) < 6
    for answer in refused:
        assert "conversation" in refusal(answer, 409, "conversation_busy")
        assert answer.headers["retry-after"]
    # Others may begin alike, at any time.
    ask(client, *earlier, user("And?"), metadata={"conversation_id": f"{name}-other"})
    store = api.services.store
    questions = [turn.question for turn in store.load(name).turns]
    taken = len(answers) - len(refused)
    assert questions == [m["content"] for m in earlier[:1]] + ["wish:slow"] * taken


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2), ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("functions", [{"name": "f"}]), ("response_format", {"type": "json_object"}),
        ("logprobs", True), ("logit_bias", {"1": 5}), ("frequency_penalty", 0.5),
        ("presence_penalty", -1), ("audio", {}), ("modalities", ["audio"]), ("n", True),
        ("temperature", 3), ("temperature", "hot"), ("top_p", -1), ("max_tokens", 0),
        ("max_completion_tokens", 1.5), ("seed", 1 << 70), ("stop", [""]), ("stop", ["a"] * 5),
        ("stream_options", {"include_usage": True}), ("metadata", {"history": "none"}),
        ("metadata", {"conversation_id": "../x"}), ("metadata", {"conversation_id": "x" * 65}),
        ("metadata", {"file_ids": 5}), ("unheard_of", 1), ("messages", []), ("messages", "hi"),
        ("messages", [{"role": "assistant", "content": "I"}]),
        ("messages", [{"role": "system", "content": "only"}]),
        ("messages", [{"role": "user", "content": " "}]),
        ("messages", [{"role": "user", "content": None}]),
        ("messages", [{"role": "nobody", "content": "x"}]),
        ("messages", [{"role": "tool", "content": "x", "tool_call_id": "1"}]),
        ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_by_name(api: Api, field: str, value: Any) -> None:
    answer = post(api, {"model": "scripted", "messages": HELLO, field: value})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"].startswith(field) and error["message"].endswith(".")


def test_more_than_can_be_taken_is_refused_as_openai_does(api: Api) -> None:
    whole = {"model": "scripted", "messages": HELLO}
    error = post(api, {**whole, "stop": ["a"] * 5}).json()["error"]
    assert (error["param"], error["code"]) == ("stop", "array_above_max_length")
    assert error["message"] == (
        "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array "
        "with length 5 instead."
    )
    answer = post(api, {**whole, "messages": HELLO * 2049})
    assert answer.json()["error"]["code"] == "array_above_max_length"
    for name in ("x" * 100_000, "이" * 100_000, "a b" * 30_000):
        error = post(api, {**whole, name: 1}).json()["error"]
        assert len(error["message"]) < 200 and name[:60] in error["message"]
        assert "letters)" in error["param"]
    assert post(api, {**whole, "a b": 1}).json()["error"]["param"] == "a b"
    error = post(api, {**whole, "metadata": {str(n): "x" for n in range(17)}}).json()["error"]
    assert error["param"] == "metadata" and "array" not in error["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"a": NaN', b'{"model": "\\ud800"}',
        b"[" * 100_000, b'{"a":' * 50_000, b'{"model":"scripted","messages":[{"role":"user",'
        b'"content":"\xc3\x28"}]}', b"\x00" * 100,
    ],
)  # fmt: skip
def test_bodies_that_are_no_json_are_refused(api: Api, body: bytes) -> None:
    refusal(post(api, body), 400, post(api, body).json()["error"]["code"])


def test_every_refusal_has_the_shape_of_openai(api: Api) -> None:
    whole = {"model": "scripted", "messages": HELLO}
    assert "scripted" in refusal(post(api, {**whole, "model": "gpt-4o"}), 404, "model_not_found")
    large = {**whole, "messages": [user("x" * (5 << 20))]}
    assert "4 MiB" in refusal(post(api, large), 413, "too_large")
    refusal(post(api, b"model=x", **{"Content-Type": "text/plain"}), 415, "invalid_content_type")
    plain = api.plain
    refusal(plain.get("/nothing"), 404, "not_found")
    refusal(plain.get("/chat/completions"), 405, "method_not_allowed")
    refusal(plain.get("/models/other"), 404, "model_not_found")
    refusal(plain.get("/files?limit=0"), 400, "invalid_value")
    refusal(plain.get("/files?after=x"), 400, "invalid_value")
    refusal(plain.delete("/files/x"), 404, "file_not_found")
    refusal(plain.post("/files", content=b"x"), 400, "invalid_value")
    refusal(plain.post("/files", files={"other": b"x"}), 400, "missing_required_parameter")
    refusal(
        plain.post("/files", files={"file": b"x"}, data={"purpose": "batch"}), 400,
        "invalid_value",
    )  # fmt: skip
    sent = {"Content-Type": "multipart/form-data"}
    refusal(plain.post("/files", content=b"x", headers=sent), 400, "invalid_value")


def test_sampling_reaches_the_engine(api: Api, client: Any) -> None:
    ask(
        client, temperature=0.5, top_p=0.9, seed=-7, stop=["END"], max_completion_tokens=33,
        extra_body={"repetition_penalty": 1.5},
    )  # fmt: skip
    params = api.services.engine.calls[-1].params  # type: ignore[attr-defined]
    assert (params.temperature, params.top_p, params.stop) == (0.5, 0.9, ("END",))
    assert params.max_tokens == 33 and params.repetition_penalty == 1.5 and params.seed >= 0


def test_ending_the_program_ends_streams_and_stores_what_there_is(tmp_path: Path) -> None:
    ending = Api(tmp_path)
    body = {
        "model": "default", "stream": True, "messages": [user("wish:slow")],
        "metadata": {"conversation_id": "c"},
    }  # fmt: skip
    with ending.plain.stream("POST", "chat/completions", json=body) as answer:
        lines = answer.iter_lines()
        until(lambda: "word" in next(lines), "the first words")
        begin = time.monotonic()
        ending.handle.close()
        rest = [line for line in lines if line]
        assert time.monotonic() - begin < 20
    assert rest[-1] == "data: [DONE]" and '"finish":"cancelled"' in rest[-2]
    (turn,) = ending.services.store.load("c").turns
    assert turn.finish == "cancelled" and turn.reply.startswith("word0")
    ending.close()


def test_the_model_says_how_much_it_takes(api: Api) -> None:
    (model,) = api.plain.get("models").json()["data"]
    assert model["id"] == "scripted" and model["max_model_len"] == 2048
    assert api.plain.get("models/default").json() == model


def test_a_slow_reply_streams_as_it_is_made(client: Any) -> None:
    begin, times = time.monotonic(), []
    for chunk in ask(client, user("wish:slow"), stream=True, max_tokens=30):
        if chunk.choices[0].delta.content:
            times.append(time.monotonic() - begin)
    assert len(times) > 5 and times[0] < times[-1] / 2


def test_the_description_is_valid_and_names_every_route(api: Api) -> None:
    described = api.plain.get("openapi.json").json()
    assert set(described["paths"]) == {
        "/v1/chat/completions", "/v1/models", "/v1/models/{model_id}", "/v1/files",
        "/v1/files/{file_id}",
    }  # fmt: skip
    text = json.dumps(described)
    known = described["components"]["schemas"]
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in known
