"""Faults in a model's calls, for tests: an output that is changed, or an error in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Fault:
    """Does something to the model's output, or instead of it, at one call or some in a row."""

    def __init__(
        self, model: Any, at_call: int, action: Callable[[Any], Any], *, times: int = 1
    ) -> None:
        self.calls = 0
        self._calls = range(at_call, at_call + times)
        self._action = action
        self._hook = model.register_forward_hook(self._run)

    def _run(self, module: Any, arguments: Any, output: Any) -> Any:
        self.calls += 1
        return self._action(output) if self.calls in self._calls else output

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *details: object) -> None:
        self._hook.remove()


def with_logit(value: float) -> Callable[[Any], Any]:
    """One logit of every row becomes `value`."""

    def change(output: Any) -> Any:
        output.logits[..., 7] = value
        return output

    return change


def raising(error: Exception) -> Callable[[Any], Any]:
    """An error like this one, and new each time, in place of the output.

    The error itself would hold the tensors of the call in its traceback.
    """

    def fail(output: Any) -> Any:
        raise type(error)(*error.args)

    return fail
