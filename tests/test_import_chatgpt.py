"""ChatGPT's export: trees of messages become chats, other branches become versions."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from cli import inside

from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.import_chatgpt import is_chatgpt, parse_chatgpt
from chatbot.interchange import read_conversation, read_conversations
from chatbot.settings import Settings
from chatbot.store import Store


def node(node_id: str, parent: str, role: str, *parts: object, **more: Any) -> dict[str, Any]:
    content = more.pop("content", {"content_type": "text", "parts": list(parts)})
    author = {"role": role, "name": more.pop("name", None)}
    message = {"id": node_id, "author": author, "content": content, "create_time": 1700000000.5}
    return {"id": node_id, "parent": parent, "message": message | more, "children": []}


def tree(*nodes: dict[str, Any], current: str | None) -> dict[str, Any]:
    root = {"id": "root", "parent": None, "message": None, "children": []}
    mapping = {"root": root} | {n["id"]: n for n in nodes}
    for n in nodes:
        mapping[n["parent"]]["children"].append(n["id"])
    return {
        "title": "서울 여행",
        "create_time": 1700000000.0,
        "update_time": 1700000001.0,
        "conversation_id": "chat-1",
        "mapping": mapping,
        "current_node": current,
    }


def test_ids_that_come_again_are_replaced_by_fresh_ones_and_told(tmp_path: Path) -> None:
    chat = tree(
        node("u1", "root", "user", "Where to?"),
        node("a1", "u1", "assistant", "To Busan."),
        node("a1b", "u1", "assistant", "To Seoul."),
        node("u2", "a1b", "user", "And then?"),
        node("a2", "u2", "assistant", "Home."),
        current="a2",
    )
    for name, same in (("a1", "u1"), ("a1b", "u1"), ("a2", "u2")):
        chat["mapping"][name]["message"]["id"] = same
    found = parse_chatgpt([chat])
    [one] = found.chats
    assert [turn.reply for turn in one.turns] == ["To Seoul.", "Home."]
    assert [i for turn in one.turns for i in turn.message_ids] == ["u1", "u1'", "u2", "u2'"]
    [branch] = one.branches
    assert branch.turns[0].reply == "To Busan."
    assert found.left_out == ()
    assert found.changed == (
        "[0] 서울 여행: Messages with the id of an earlier one have a new id: 3.",
    )
    with Store(tmp_path / "chats.db") as store:
        assert len(store.import_conversation(one).turns) == 2


def trip() -> dict[str, Any]:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Plan", "content": "Think."}]}
    return tree(
        node("s", "root", "system", ""),
        node("h", "s", "user", "my instructions", **hidden),
        node("u1", "h", "user", "Where to?", image),
        node("a1", "u1", "assistant", "To Busan."),
        node("a1b", "u1", "assistant", "To Seoul."),
        node("t1", "a1b", "assistant", content=thoughts),
        node("w1", "t1", "tool", "Sunny.", name="weather"),
        node("f1", "w1", "assistant", "It is sunny.", {"content_type": "text", "text": "Yes."}),
        node("u2", "f1", "user", "And then?"),
        node("a2", "u2", "assistant", "Home."),
        node("u2b", "f1", "user", "And food?"),
        node("a2b", "u2b", "assistant", "Bibimbap."),
        current="a2b",
    )


def test_the_shown_branch_is_the_chat_and_the_others_are_versions(tmp_path: Path) -> None:
    (chat,) = parse_chatgpt([trip()]).chats
    assert (chat.id, chat.title) == ("chat-1", "서울 여행")
    assert chat.created == "2023-11-14T22:13:20.000+00:00"
    assert [t.question for t in chat.turns] == ["Where to?\n[image]", "And food?"]
    first, second = chat.turns
    assert first.message_ids == ("u1", "a1b", "t1", "w1", "f1")
    assert [m.name for m in first.assistant] == [None, "thoughts", "weather", None]
    assert [m.content for m in first.assistant][1:] == [
        "Plan\nThink.",
        "Sunny.",
        "It is sunny.\nYes.",
    ]
    assert first.user[0].created == "2023-11-14T22:13:20.500+00:00"
    assert second.reply == "Bibimbap."
    with Store(tmp_path / "chats.db") as store:
        stored = store.import_conversation(chat)
        assert stored.turns == chat.turns
        versions = store.versions(stored.id, stored.turns[1].id)
        assert {v.question: v.reply for v in versions} == {
            "And food?": "Bibimbap.",
            "And then?": "Home.",
        }
        other = next(v for v in store.versions(stored.id, stored.turns[0].id) if not v.is_current)
        assert other.reply == "To Busan."
        store.switch_version(stored.id, other.id)
        assert [t.reply for t in store.load(stored.id).turns] == ["To Busan."]
        assert len(store.list_conversations()) == 1
        assert store.search_conversations("bibimbap") == []


def test_a_file_of_many_chats(tmp_path: Path) -> None:
    empty = tree(node("s", "root", "system", "x"), current="s")
    path = tmp_path / "conversations.json"
    lost = trip() | {"current_node": "gone"}
    path.write_text(json.dumps([trip(), empty, lost]), encoding="utf-8")
    read = read_conversations(path)
    chats = read.chats
    assert len(chats) == 2
    assert read.left_out == ("[1] 서울 여행: there is no message in it that ChatGPT shows.",)
    assert read.changed == ("Messages that ChatGPT does not show were left out: 2.",)
    assert chats[1].turns
    with pytest.raises(InputError, match="holds 3 chats"):
        read_conversation(path)
    path.write_text(json.dumps(trip()), encoding="utf-8")
    assert read_conversation(path) == chats[0]


def test_what_is_no_tree_is_refused_by_name(tmp_path: Path) -> None:
    circle = trip()
    circle["mapping"]["s"]["parent"] = "a2b"
    with pytest.raises(InputError, match=r"\[0\] 서울 여행: .*its own ancestor"):
        parse_chatgpt([circle, {"title": "x"}])
    assert not is_chatgpt([])
    assert not is_chatgpt([{"role": "user", "content": "x"}])
    path = tmp_path / "x.json"
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="no message"):
        read_conversations(path)


def test_every_chat_of_a_file_keeps_its_id_where_it_is_free(tmp_path: Path) -> None:
    names = ("c1", "../c2", "c3")
    read = parse_chatgpt([trip() | {"conversation_id": name} for name in names])
    with Store(tmp_path / "chats.db") as store:
        assert tuple(store.import_conversation(chat).id for chat in read.chats) == names
        again = [store.import_conversation(chat).id for chat in read.chats]
        assert not set(names) & set(again)
        assert len(store.list_conversations()) == 6


def test_a_faulty_chat_hinders_no_other_and_is_named() -> None:
    circle = trip()
    circle["mapping"]["s"]["parent"] = "a2b"
    found = parse_chatgpt([{"title": "x"}, trip(), circle, 5, trip()])
    assert len(found.chats) == 2
    assert [reason.split(":")[0] for reason in found.left_out] == ["[0] x", "[2] 서울 여행", "[3]"]
    assert "its own ancestor" in found.left_out[1]
    assert "no 'mapping'" in found.left_out[0]


def test_the_command_tells_what_it_left_out(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([trip(), {"title": "Broken"}]), encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    command = importlib.import_module("chatbot.commands.import")
    given = argparse.Namespace(files=[path], json=True)
    assert command.run(given, Settings(data_dir=tmp_path), Console(out, err)) == 0
    stored, hidden, left_out = [json.loads(line) for line in out.getvalue().splitlines()]
    assert hidden["changed"] == "Messages that ChatGPT does not show were left out: 1."
    assert stored["turns"] and "[1] Broken" in left_out["left_out"]
    assert "Left out of conversations.json: [1] Broken" in err.getvalue()


@pytest.mark.parametrize(
    "broken",
    [
        {"author": "user"},
        {"author": None, "metadata": [1]},
        {"content": "Where to?"},
        {"content": ["Where to?"]},
        {"content": {"parts": ["Where to?"], "thoughts": 5}},
        {"create_time": -9e10},
        {"create_time": 10**400},
        {"create_time": float("nan")},
    ],
)
def test_odd_forms_of_a_message_lose_no_text(broken: dict[str, Any]) -> None:
    (chat,) = parse_chatgpt(
        [tree(node("u", "root", "user", "Where to?", **broken), current=None)]
    ).chats
    assert [m.content for turn in chat.turns for m in (*turn.user, *turn.assistant)] == [
        "Where to?"
    ]


def test_places_without_a_message_are_passed_over_and_others_refused() -> None:
    chat = tree(node("u", "root", "user", "Where to?"), current="u")
    chat["mapping"]["x"] = None
    assert len(parse_chatgpt(chat).chats[0].turns) == 1
    chat["mapping"]["x"] = "text"
    with pytest.raises(InputError, match="'x' is no object"):
        parse_chatgpt(chat)


def test_many_branches_of_a_long_chat_are_read_in_seconds() -> None:
    roles = ("user", "assistant")
    trunk = [node(f"n{n}", f"n{n - 1}" if n else "root", roles[n % 2], f"{n}") for n in range(2000)]
    others = [node(f"b{n}", f"n{n - 1}", roles[n % 2], f"other {n}") for n in range(1, 2000, 5)]
    started = time.process_time()
    (chat,) = parse_chatgpt(tree(*trunk, *others, current="n1999")).chats
    assert time.process_time() - started < 5
    assert len(chat.branches) == len(others)
    for branch in chat.branches:
        (turn,) = branch.turns
        mine = chat.turns[branch.at]
        if turn.assistant:
            assert turn.user == mine.user
        assert turn.message_ids != mine.message_ids


def test_the_commands_import_and_export(tmp_path: Path) -> None:
    path, data = tmp_path / "conversations.json", ("--data-dir", tmp_path / "data")
    path.write_text(json.dumps([trip(), trip()]), encoding="utf-8")
    done = inside("import", path, "--json", *data)
    assert done.code == 0, done.err
    first, second, _ = done.lines
    assert (first["turns"], first["title"], first["id"]) == (2, "서울 여행", "chat-1")
    assert second["id"] != "chat-1"
    assert "2 chats have this title" in inside("export", "서울 여행", *data).err
    exported = inside("export", "chat-1", *data)
    again = tmp_path / "again.json"
    again.write_text(exported.out, encoding="utf-8")
    assert inside("import", again, *data).code == 0
    text = inside("export", "chat-1", "--format", "markdown", *data).out
    for part in ("# 서울 여행", "`chat-1`", "`u1`", "2023-11-14T22:13:20.500+00:00", "Bibimbap."):
        assert part in text
    assert "no chat 'x'; 'export --list'" in inside("export", "x", *data).err
    assert "chat-1  2 turns  서울 여행" in inside("export", "--list", *data).out
    folder = tmp_path / "all"
    assert inside("export", "--all", folder, *data).code == 0
    assert "name a new folder" in inside("export", "--all", folder, *data).err
    elsewhere = ("--data-dir", tmp_path / "elsewhere")
    assert inside("import", *sorted(folder.iterdir()), *elsewhere).code == 0
    lists = [
        sorted(inside("export", "--list", *where).out.splitlines()) for where in (data, elsewhere)
    ]
    assert lists[0] == lists[1] and len(lists[0]) == 3
    before = len(inside("import", again, "--json", *data).lines)
    bad = tmp_path / "bad.json"
    bad.write_text('[{"role": "wizard", "content": "x"}]', encoding="utf-8")
    refused = inside("import", again, bad, *data)
    assert before == 1
    assert refused.code != 0
    assert "wizard" in refused.err
    with Store(tmp_path / "data" / "chats.db") as store:
        assert len(store.list_conversations()) == 4


def test_a_message_whose_children_are_lost_is_still_a_last_one() -> None:
    chat = trip()
    chat["mapping"]["a2"]["children"] = ["gone"]
    (found,) = parse_chatgpt([chat]).chats
    kept = [m.content for branch in found.branches for t in branch.turns for m in t.assistant]
    assert "Home." in kept
    assert len(found.branches) == 2


def test_a_chat_that_goes_round_in_circles_is_named_and_not_dropped() -> None:
    circle = {
        "title": "Round",
        "mapping": {
            "a": node("a", "b", "user", "Hello?"),
            "b": node("b", "a", "assistant", "Hello."),
        },
    }
    read = parse_chatgpt([circle, trip()])
    assert len(read.chats) == 1
    assert read.left_out == ("[0] Round: the message 'a' is its own ancestor.",)


@pytest.mark.parametrize("odd", [7, 5.5, ["x"], {"x": 1}])
def test_odd_titles_and_names_cost_no_chat(odd: object) -> None:
    chat = trip() | {"title": odd}
    chat["mapping"]["w1"]["message"]["author"]["name"] = odd
    chat["mapping"]["u1"]["message"]["id"] = odd
    (found,) = parse_chatgpt([chat]).chats
    assert found.title == ""
    assert found.turns[0].user[0].id == "u1"
    assert "Sunny." in [message.content for turn in found.turns for message in turn.assistant]
