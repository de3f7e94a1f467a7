"""What a user does besides asking: uploads, deletions, restarts, corrections of the memory."""

from __future__ import annotations

from collections.abc import Callable

from chatbot.errors import InputError
from chatbot.regression.steps import Step
from chatbot.regression.target import Target, ingest
from chatbot.regression.texts import holds


def act(target: Target, conversation_id: str, step: Step) -> None:
    """Do what the step says. Raises InputError when there is nothing to do it to."""
    _ACTIONS[step.action](target, conversation_id, step)


def _restart(target: Target, conversation_id: str, step: Step) -> None:
    target.restart()


def _upload(target: Target, conversation_id: str, step: Step) -> None:
    assert step.document is not None, "read_step() has checked it"
    new = ingest(target.library, step.document, step.name)
    ids = target.store.load(conversation_id).document_ids
    target.store.set_documents(conversation_id, list(dict.fromkeys((*ids, new))))


def _delete_document(target: Target, conversation_id: str, step: Step) -> None:
    ids = [info.id for info in target.library.documents() if info.name == step.name]
    if not ids:
        raise InputError(f"line {step.line}: there is no document {step.name!r} to delete")
    target.library.delete(ids[0])
    target.store.remove_document_everywhere(ids[0])


def _forget_turn(target: Target, conversation_id: str, step: Step) -> None:
    target.chat.forget_turn(conversation_id, _turn_id(target, conversation_id, step))


def _switch_version(target: Target, conversation_id: str, step: Step) -> None:
    """Back to the way in which a turn went before it was edited or retried."""
    turn_id = _turn_id(target, conversation_id, step)
    others = [v for v in target.chat.versions(conversation_id, turn_id) if not v.is_current]
    if not others:
        raise InputError(f"line {step.line}: turn {step.turn} has no other version")
    target.chat.switch_version(conversation_id, others[-1].id)


def _add_fact(target: Target, conversation_id: str, step: Step) -> None:
    target.chat.add_fact(conversation_id, step.text)


def _edit_summary(target: Target, conversation_id: str, step: Step) -> None:
    target.chat.edit_summary(conversation_id, step.text)


def _delete_fact(target: Target, conversation_id: str, step: Step) -> None:
    target.chat.delete_fact(conversation_id, _fact_id(target, conversation_id, step))


def _pin_fact(target: Target, conversation_id: str, step: Step) -> None:
    target.chat.pin_fact(conversation_id, _fact_id(target, conversation_id, step), True)


def _turn_id(target: Target, conversation_id: str, step: Step) -> str:
    turns = target.store.load(conversation_id).turns
    if step.turn > len(turns):
        raise InputError(f"line {step.line}: there is no turn {step.turn}")
    return turns[step.turn - 1].id


def _fact_id(target: Target, conversation_id: str, step: Step) -> str:
    summary = target.store.load(conversation_id).summary
    for fact in summary.facts if summary else ():
        if holds(fact.text, step.text):
            return fact.id
    raise InputError(f"line {step.line}: there is no fact with {step.text!r}")


_ACTIONS: dict[str, Callable[[Target, str, Step], None]] = {
    "restart": _restart,
    "upload": _upload,
    "delete_document": _delete_document,
    "forget_turn": _forget_turn,
    "switch_version": _switch_version,
    "add_fact": _add_fact,
    "edit_summary": _edit_summary,
    "delete_fact": _delete_fact,
    "pin_fact": _pin_fact,
}
