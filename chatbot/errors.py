"""Every error that a person can meet, as one tree.

    ChatbotError                    one clear sentence; exit code 1
    |- InputError                   what was given is wrong; exit code 2
    |  |- SettingsError             an unknown setting or an impossible value, by name
    |  |  `- UntoldContextError      ... a server that may tell later does not tell its context
    |  |- TokenizerError            a tokenizer that cannot be read or used for chat
    |  |- IdTakenError              an id that a conversation of somebody has already
    |  `- BudgetError               required parts do not fit the window; says by how much
    |- ModelError                   a model cannot be found, fetched, read or fitted
    |- EngineError                  a reply failed while it was being made
    |  |- OutOfMemoryError          memory ran out; the turn is kept, the next one works
    |  |  `- SmallerPromptError     ... before the first token; a smaller prompt may do
    |  |- EngineBusyError           the engine did not become free in time
    |  `- RemoteError               the server that makes the replies refused or failed
    |     |- PromptTooLongError     ... its context is shorter than prompt and reply
    |     |- UnknownModelError      ... it does not have the model
    |     |- WrongKeyError          ... it does not take the key
    |     |- ServerBusyError        ... it has too much to do, or a fault of its own
    |     |- ConnectionLostError    ... it broke off in the middle of a reply
    |     `- NoAnswerError          ... nothing came from it in time
    `- StoreError                   the database cannot be read or written
       `- TurnGoneError             a turn was removed while it was being answered

`retrieval` has its own small tree (`retrieval.types.RetrievalError`).
"""


class ChatbotError(Exception):
    """Base of all errors that carry a sentence for the user. `str(error)` is that sentence."""

    exit_code = 1


class InputError(ChatbotError):
    """Something that the user gave is wrong; the sentence says what, and what to do."""

    exit_code = 2


class SettingsError(InputError):
    """A setting is unknown, or its value impossible."""


class UntoldContextError(SettingsError):
    """A server does not tell how long its context is, but servers of its kind do: its model may
    not be there yet. Else a setting must tell it."""


class TokenizerError(InputError):
    """A tokenizer cannot be read, or has no usable chat format."""


class IdTakenError(InputError):
    """There is a conversation of this id already."""


class BudgetError(InputError):
    """The system text and the question alone do not fit the window.

    `missing_tokens` is how many tokens too many there are.
    """

    def __init__(self, message: str, missing_tokens: int) -> None:
        super().__init__(message)
        self.missing_tokens = missing_tokens


class ModelError(ChatbotError):
    """A model cannot be found, fetched, read or fitted into memory."""


class EngineError(ChatbotError):
    """A reply failed while it was being made. `kind` says why, for programs."""

    kind = "reply_failed"


class OutOfMemoryError(EngineError):
    """Memory ran out during a reply. `ladder` are the steps that were taken against it."""

    kind = "out_of_memory"

    def __init__(self, message: str, ladder: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ladder = ladder


class SmallerPromptError(OutOfMemoryError):
    """Memory ran out before the first token; ask again with a smaller prompt and `ladder`."""


class EngineBusyError(EngineError):
    """The engine did not become free in time."""

    kind = "engine_busy"


class RemoteError(EngineError):
    """The server that makes the replies refused a request, or failed."""

    kind = "model_server_refused"


class PromptTooLongError(RemoteError):
    """Prompt and reply exceed the server's context of `limit_tokens`; 0 where it names none."""

    kind = "context_length_exceeded"

    def __init__(self, message: str, limit_tokens: int = 0) -> None:
        super().__init__(message)
        self.limit_tokens = limit_tokens


class UnknownModelError(RemoteError):
    """The server does not have the model."""


class WrongKeyError(RemoteError):
    """The server does not take the key, or wants one."""

    kind = "model_server_key"


class ServerBusyError(RemoteError):
    """The server has too much to do, or a fault of its own; `retry_after_s` is its own wish."""

    kind = "model_server_busy"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ConnectionLostError(RemoteError):
    """The server broke off in the middle of a reply; what came of it is kept."""

    kind = "model_server_lost"


class NoAnswerError(RemoteError):
    """Nothing came from the server in time, or nobody listens at its address."""

    kind = "model_server_away"


class StoreError(ChatbotError):
    """The conversation database cannot be read or written."""


class TurnGoneError(StoreError):
    """The turn, or its conversation, was removed while it was being answered."""
