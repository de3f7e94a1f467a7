"""Chats from ChatGPT's export, `conversations.json`: each is a tree of messages.

The branch that was shown last becomes the chat, the others its versions. Knows no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeGuard

from chatbot.errors import InputError
from chatbot.import_changes import CIRCLING, HIDDEN, TWICE, Changes, time_of, told_of
from chatbot.import_chatgpt_messages import Node, object_of, shown_message, text_or_none
from chatbot.import_messages import parse_messages
from chatbot.import_tree import Tree, tree_of
from chatbot.messages import Branch, Conversation
from chatbot.written_times import seconds_of

Shown = Mapping[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ChatFile:
    """What a file with chats held. `left_out` names each chat that cannot be read, and says why.

    `changed` are sentences on what of the chats is not as it was in the file.
    """

    chats: tuple[Conversation, ...]
    left_out: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def is_chatgpt(data: object) -> bool:
    """Whether parsed JSON is such an export, or one chat of it."""
    return any(_is_chat(chat) for chat in (data if isinstance(data, list) else [data]))


def parse_chatgpt(data: object) -> ChatFile:
    """All chats of an export that have a message, in its order; a faulty one hinders no other.

    Kept are ids, times, titles and all text; what is no text leaves a mark such as "[image]".
    What tools and the model's own thinking wrote stands on the side of the answer, under its
    name; messages that ChatGPT hides from the user are left out and counted. Whatever else is
    not taken is named, with its chat. Raises InputError that names the first chat if none can
    be read. A message with the id of another one gets a fresh one.
    """
    found: list[Conversation] = []
    left_out, changed = list[str](), list[str]()
    hidden = 0
    for number, chat in enumerate(data if isinstance(data, list) else [data]):
        title = f" {chat['title']}" if isinstance(chat, dict) and chat.get("title") else ""
        name = f"[{number}]{title}"
        changes: Changes = Changes()
        try:
            found.append(_conversation(chat, changes))
        except InputError as error:
            left_out.append(f"{name}: {error}")
        else:
            hidden += changes.pop(HIDDEN, 0)
            changed += [f"{name}: {sentence}" for sentence in told_of(changes)]
    if left_out and not found:
        raise InputError(left_out[0])
    # Nearly every chat of every export has some: one sentence for the file says enough.
    changed += told_of(Changes({HIDDEN: hidden}))
    return ChatFile(tuple(found), tuple(left_out), tuple(changed))


def _is_chat(chat: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(chat, dict) and isinstance(chat.get("mapping"), dict)


def _conversation(chat: object, changes: Changes) -> Conversation:
    if not _is_chat(chat):
        raise InputError("it is no chat of ChatGPT: it has no 'mapping'.")
    nodes = _nodes(chat["mapping"])
    read = ((name, shown_message(name, node, changes)) for name, node in nodes.items())
    shown = {name: message for name, message in read if message is not None}
    tree = tree_of({n: text_or_none(node.get("parent")) for n, node in nodes.items()}, shown)
    leaf = tree.last(text_or_none(chat.get("current_node")), lambda n: _seconds_of(nodes[n]))
    if leaf is None:
        raise InputError(_why_nothing(tree))
    changes[CIRCLING] += len(tree.circling)
    path = tree.path(leaf)
    own = _with_own_ids(shown, (*path, *tree.follows), changes)
    main = _parsed(chat, [own[name] for name in path], changes)
    found = (_branch(main, own, tree, (path, other)) for other in tree.leaves() if other != leaf)
    return replace(main, branches=tuple(branch for branch in found if branch is not None))


def _why_nothing(tree: Tree) -> str:
    if tree.circling:
        return f"the message {tree.circling[0]!r} is its own ancestor."
    return "there is no message in it that ChatGPT shows."


def _nodes(mapping: Mapping[str, object]) -> dict[str, Node]:
    """The places of the tree. Raises InputError for one that is neither an object nor null."""
    for name, node in mapping.items():
        if node is not None and not isinstance(node, dict):
            raise InputError(f"the message {name!r} is no object.")
    return {name: node for name, node in mapping.items() if isinstance(node, dict)}


def _with_own_ids(shown: Shown, names: Sequence[str], changes: Changes) -> Shown:
    """The messages with an id for each, none twice; of two the first of `names` keeps its own."""
    own: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for name in dict.fromkeys(names):
        fresh = shown[name]["id"]
        while fresh in seen:
            fresh += "'"
        seen.add(fresh)
        changes[TWICE] += fresh != shown[name]["id"]
        own[name] = shown[name] | {"id": fresh}
    return own


def _branch(
    main: Conversation, shown: Shown, tree: Tree, ends: tuple[Sequence[str], str]
) -> Branch | None:
    """What follows up to a leaf, the second of `ends`, in the place of turns of `main`, whose
    path is the first; None if that is nothing.

    Read is only what leaves the shown branch, with the turn in which it does so: a chat may have
    thousands of messages and hundreds of branches.
    """
    main_path, leaf = ends
    places = {name: n for n, name in enumerate(main_path)}
    own = list(takewhile(lambda name: name not in places, tree.upwards(leaf)))
    fork = tree.follows[own[-1]]
    shared = main_path[: places[fork] + 1] if fork is not None else ()
    at = before = 0
    for turn in main.turns:
        if before + len(turn.message_ids) >= len(shared):
            break
        at, before = at + 1, before + len(turn.message_ids)
    other = _parsed({}, [shown[name] for name in (*shared[before:], *own[::-1])], Changes()).turns
    for n, (mine, theirs) in enumerate(zip(main.turns[at:], other, strict=False)):
        if mine.message_ids != theirs.message_ids:
            return Branch(at + n, other[n:])
    return None


def _seconds_of(node: Node) -> float:
    return seconds_of(object_of(node.get("message")).get("create_time"))


def _parsed(
    chat: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], changes: Changes
) -> Conversation:
    whole = {
        "id": _id_of(chat),
        "title": text_or_none(chat.get("title")) or "",
        "created": time_of(chat.get("create_time"), changes),
        "updated": time_of(chat.get("update_time"), changes),
        "messages": list(messages),
    }
    return parse_messages(whole)


def _id_of(chat: Mapping[str, Any]) -> str | int | None:
    """Its id; None where what stands there is none, so that it gets a fresh one."""
    for key in ("conversation_id", "id"):
        value = chat.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return value
    return None
