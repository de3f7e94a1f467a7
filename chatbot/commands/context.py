"""`context`: the prompt that each question would have, piece by piece; stores nothing."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from chatbot.budget import DEFAULT_REPLY_TOKENS, MIN_REPLY_TOKENS
from chatbot.commands.common import (
    add_documents,
    add_json,
    check_paths,
    checked_text,
    read_documents,
)
from chatbot.commands.imported import fold_imported
from chatbot.commands.questions import Question, read_questions
from chatbot.commands.table import trace_table
from chatbot.console import Console
from chatbot.engine.base import ChatTokenizer
from chatbot.engine.model_figures import figures_of
from chatbot.engine.models import read_config
from chatbot.errors import BudgetError, ChatbotError, InputError
from chatbot.interchange import read_conversation, trace_record
from chatbot.messages import Conversation, PromptTrace
from chatbot.parts import (
    build_embedder,
    count_with,
    load_engine,
    load_model_tokenizer,
    open_library,
)
from chatbot.prompting import PromptBuilder
from chatbot.recall_vectors import RecallVectors
from chatbot.records import new_id
from chatbot.settings import Settings, flags_of, load_settings
from chatbot.windows import DEMO_WINDOW_TOKENS, MAX_WINDOW_TOKENS, window_tokens
from retrieval.load import document_name
from retrieval.pipeline import Library

MIN_WINDOW_TOKENS = 64
"""The settings refuse less."""
EMBEDDED_TOKENS = 16_000
"""So much of the old turns gets vectors here, the user's own words first: some seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conversation",
        type=Path,
        metavar="FILE",
        help='JSON: {"messages": [{"role", "content", "id", "name", "created"}]} or such a list; '
        "its old turns are folded as --summary says, here extractive unless the flag is given",
    )
    add_documents(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--question", metavar="TEXT", help="one question")
    source.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help='one {"question", "id", "documents": [names] or null} in JSON per line',
    )
    parser.add_argument(
        "--prompt-tokens",
        type=int,
        metavar="N",
        help="limit of the whole prompt; the window is then N plus the reply's tokens",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Print one trace per question, or why there is none: then the exit code is not 0."""
    settings = _limited(arguments, settings)
    if arguments.summary is None and settings.summary == "model":
        settings = settings.model_copy(update={"summary": "extractive"})
    questions = (
        [Question(checked_text(arguments.question, "The question"))]
        if arguments.questions is None
        else read_questions(arguments.questions)
    )
    check_paths(arguments.documents)
    given = arguments.conversation
    conversation = Conversation(id=new_id()) if given is None else read_conversation(given)
    with ExitStack() as stack:
        tokenizer, window = _tokenizer_and_window(settings, console, stack)
        library, ids = None, {}
        if arguments.documents:
            library = stack.enter_context(_temporary_library(settings, tokenizer, console))
            ids = read_documents(library, arguments.documents, console)
        builder = PromptBuilder(tokenizer, settings, library)
        budget = builder.budget(window)
        conversation = fold_imported(
            conversation, builder, settings, window_tokens=window, console=console
        )
        if builder.leaves_turns_out(conversation, budget):
            vectors = _recall_vectors(settings, library, console)
            builder = PromptBuilder(tokenizer, settings, library, vectors=vectors)
            builder.embed(conversation, budget, limit_tokens=EMBEDDED_TOKENS)
        n_refused = 0
        for question in questions:
            scope = replace(conversation, document_ids=_scope(question, ids))
            try:
                trace = builder.build(scope, question.text, budget).trace
            except BudgetError as error:
                if arguments.questions is None:
                    raise
                n_refused += 1
                _show_refused(question, error, arguments, console)
            else:
                _show(question, trace, arguments, console)
    return BudgetError.exit_code if n_refused else 0


def _show(
    question: Question, trace: PromptTrace, arguments: argparse.Namespace, console: Console
) -> None:
    if arguments.json:
        own_id = {} if question.id is None else {"id": question.id}
        console.json(own_id | trace_record(trace))
    else:
        console.result(trace_table(trace))


def _show_refused(
    question: Question, error: BudgetError, arguments: argparse.Namespace, console: Console
) -> None:
    """One question that does not fit costs the others nothing, and keeps its line among them."""
    if arguments.json:
        own_id = {} if question.id is None else {"id": question.id}
        console.json(own_id | {"question": question.text, "error": str(error)})
    console.note(f"chatbot: {question.text[:60]!r}: {error}")


def _limited(arguments: argparse.Namespace, settings: Settings) -> Settings:
    """With --prompt-tokens, settings whose window leaves exactly so many to the prompt."""
    limit: int | None = arguments.prompt_tokens
    if limit is None:
        return settings
    if limit < 1:
        raise InputError("--prompt-tokens must be at least 1.")
    # As in a chat: a quarter of the window. Never more than half, or the limit would be higher.
    automatic = min(DEFAULT_REPLY_TOKENS, max(limit // 3, MIN_REPLY_TOKENS))
    reply = min(settings.reply_tokens or automatic, limit)
    if limit + reply < MIN_WINDOW_TOKENS:
        raise InputError(
            f"--prompt-tokens {limit} gives a window of {limit + reply} tokens; the smallest is "
            f"{MIN_WINDOW_TOKENS}."
        )
    flags = flags_of(arguments)
    return load_settings({**flags, "window_tokens": limit + reply, "reply_tokens": reply})


def _recall_vectors(
    settings: Settings, library: Library | None, console: Console
) -> RecallVectors | None:
    """Old turns are found by their words alone where the embedding model is not to be had."""
    if settings.recall_vectors == "off" or settings.recall_share <= 0:
        return None
    if library is not None:
        return None if library.embedder is None else RecallVectors(library.embedder)
    try:
        embedder = build_embedder(settings, progress=console.model_progress)
    except ChatbotError as error:
        console.note(f"Old turns are found by their words only: {error}")
        return None
    return None if embedder is None else RecallVectors(embedder)


def _tokenizer_and_window(
    settings: Settings, console: Console, stack: ExitStack
) -> tuple[ChatTokenizer, int]:
    """Who counts, and the window that a chat would have."""
    if settings.engine_url and settings.tokenizer is None:
        engine = stack.enter_context(closing(load_engine(settings)))
        return engine.tokenizer, window_tokens(settings, engine)
    tokenizer = load_model_tokenizer(settings, progress=console.model_progress)
    return tokenizer, _window_tokens(settings)


def _window_tokens(settings: Settings) -> int:
    """The window that a chat would have; with --tokenizer, that of a large model."""
    if settings.window_tokens:
        return settings.window_tokens
    if settings.tokenizer is not None:
        return MAX_WINDOW_TOKENS
    config = read_config(settings.model, cache_dir=settings.cache_dir)
    usual = DEMO_WINDOW_TOKENS if config.kind == "demo" else MAX_WINDOW_TOKENS
    return min(usual, figures_of(config.config).window_tokens)


@contextmanager
def _temporary_library(
    settings: Settings, tokenizer: ChatTokenizer, console: Console
) -> Iterator[Library]:
    with tempfile.TemporaryDirectory(prefix="chatbot-context-") as folder:
        private = settings.in_folder(Path(folder))
        count = count_with(tokenizer)
        with closing(open_library(private, count, progress=console.model_progress)) as library:
            yield library


def _scope(question: Question, ids: dict[str, str]) -> tuple[str, ...]:
    if question.documents is None:
        return tuple(ids.values())
    # Names are kept in one form of their accents and syllables, whatever the file system has.
    names = [name if name in ids else document_name(name) for name in question.documents]
    unknown = [name for name in names if name not in ids]
    if unknown:
        raise InputError(
            f"There is no document {unknown[0]!r} for the question {question.text[:60]!r}; "
            "name it under --documents."
        )
    return tuple(ids[name] for name in names)
