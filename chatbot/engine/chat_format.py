"""Turns the control texts of a chat template into token ids; knows nothing of contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chatbot.engine.base import ChatFormat
from chatbot.engine.chat_template import ControlTexts, TemplateUnusableError, control_texts

# Tokens that end a turn or a text in the model families that we know. A reply that reaches any
# of them is over, also when the model's configuration names only one of them.
_END_TOKENS = frozenset(
    {
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|im_end|>",
        "<|end|>",
        "<|end_of_turn|>",
        "<end_of_turn>",
        "<turn|>",
        "<eos>",
        "</s>",
        "<｜end▁of▁sentence｜>",
    }
)
_LLAMA3 = ControlTexts(
    begin="<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n",
    after_system="<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
    after_user="<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    after_assistant="<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
    end="<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
)
CHATML = ControlTexts(
    begin="<|im_start|>system\n",
    after_system="<|im_end|>\n<|im_start|>user\n",
    after_user="<|im_end|>\n<|im_start|>assistant\n",
    after_assistant="<|im_end|>\n<|im_start|>user\n",
    end="<|im_end|>\n<|im_start|>assistant\n",
)
_PLAIN = ControlTexts(
    begin="",
    after_system="\n\nUser: ",
    after_user="\n\nAssistant: ",
    after_assistant="\n\nUser: ",
    end="\n\nAssistant:",
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a tokenizer tells about itself, so that a chat format can be made for it."""

    encode_text: Callable[[str], Sequence[int]]
    """Ids of ordinary text."""
    encode_control: Callable[[str], Sequence[int]]
    """Ids of text in which control tokens are recognised; adds no begin token."""
    control_tokens: Mapping[str, int]
    bos_id: int | None = None
    adds_bos: bool = False
    """The tokenizer itself puts the begin token before a text."""
    adds_space: bool = False
    """The tokenizer puts a space before every text, as SentencePiece does."""


def build_format(
    vocabulary: Vocabulary,
    template: str | ControlTexts | None,
    *,
    named_tokens: Mapping[str, str],
    end_ids: Iterable[int] = (),
) -> tuple[ChatFormat, str | None]:
    """Make the chat format, and a warning sentence when it is only a guess.

    `template` may be taken apart already; without a usable one the format is Llama 3's or ChatML
    if the vocabulary has their tokens, else plain "User:" lines. `end_ids` are the end tokens that
    the model's files name.
    """
    texts, warning = _choose_texts(vocabulary, template, named_tokens)
    after_system = _encode(vocabulary, texts.after_system)
    if not texts.has_system_role:
        after_system = tuple(vocabulary.encode_text("\n\n"))
    after_assistant = _encode(vocabulary, texts.after_assistant)
    stop_ids = _stop_ids(vocabulary, after_assistant, end_ids)
    if not stop_ids and warning is None:
        warning = (
            "This model names no end token, so its replies run to the limit; "
            "use an instruction-tuned model."
        )
    chat_format = ChatFormat(
        begin=_one_bos(vocabulary, _encode(vocabulary, texts.begin)),
        after_system=after_system,
        after_user=_encode(vocabulary, texts.after_user),
        after_assistant=after_assistant,
        end=_encode(vocabulary, texts.end),
        stop_ids=stop_ids,
        has_system_role=texts.has_system_role,
    )
    return chat_format, warning


def llama3_format(vocabulary: Vocabulary) -> ChatFormat:
    """Llama 3's chat format as its model card defines it, for its own tokenizer.model.

    Source: "Meta Llama 3" model card, section "Special tokens used with Meta Llama 3".
    """
    after_assistant = _encode(vocabulary, _LLAMA3.after_assistant)
    return ChatFormat(
        begin=_encode(vocabulary, _LLAMA3.begin),
        after_system=_encode(vocabulary, _LLAMA3.after_system),
        after_user=_encode(vocabulary, _LLAMA3.after_user),
        after_assistant=after_assistant,
        end=_encode(vocabulary, _LLAMA3.end),
        stop_ids=_stop_ids(vocabulary, after_assistant, ()),
    )


def assemble_ids(
    chat_format: ChatFormat,
    system_ids: Sequence[int],
    turns: Sequence[tuple[Sequence[int], Sequence[int]]],
    user_ids: Sequence[int],
) -> tuple[int, ...]:
    """Ids of a whole prompt: system text, past turns (user, assistant), newest user message.

    A turn whose reply is missing is written with an empty one, so roles always alternate.
    """
    ids = [*chat_format.begin, *system_ids, *chat_format.after_system]
    for asked, answered in turns:
        ids += asked
        ids += chat_format.after_user
        ids += answered
        ids += chat_format.after_assistant
    ids += user_ids
    ids += chat_format.end
    return tuple(ids)


def _choose_texts(
    vocabulary: Vocabulary,
    template: str | ControlTexts | None,
    named_tokens: Mapping[str, str],
) -> tuple[ControlTexts, str | None]:
    if isinstance(template, ControlTexts):
        return template, None
    problem = "The model comes without a chat template"
    if template is not None:
        try:
            return control_texts(template, named_tokens), None
        except TemplateUnusableError as error:
            problem = f"The model's chat template cannot be used: {error}"
    tokens = vocabulary.control_tokens
    if {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"} <= tokens.keys():
        return _LLAMA3, f"{problem}; the Llama 3 format is used instead."
    if {"<|im_start|>", "<|im_end|>"} <= tokens.keys():
        return CHATML, f"{problem}; the ChatML format is used instead."
    return _PLAIN, f'{problem}; plain "User:" and "Assistant:" lines are used instead.'


def _encode(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    if vocabulary.adds_space:
        # The tokenizer writes this space itself, before this text and before the next content.
        text = text.removeprefix(" ").removesuffix(" ")
    return tuple(vocabulary.encode_control(text)) if text else ()


def _one_bos(vocabulary: Vocabulary, begin: tuple[int, ...]) -> tuple[int, ...]:
    """The begin token exactly once, whether the template prints it or the tokenizer adds it."""
    bos = vocabulary.bos_id
    printed = 0
    while printed < len(begin) and begin[printed] == bos:
        printed += 1
    if bos is None or (printed == 0 and not vocabulary.adds_bos):
        return begin
    return (bos, *begin[printed:])


def _stop_ids(
    vocabulary: Vocabulary, after_assistant: Sequence[int], end_ids: Iterable[int]
) -> frozenset[int]:
    """End tokens, and whatever control tokens the template writes after a reply.

    The latter close the turn or open the next one; a model that writes either is done.
    """
    control = frozenset(vocabulary.control_tokens.values())
    known = {id_ for token, id_ in vocabulary.control_tokens.items() if token in _END_TOKENS}
    return frozenset(end_ids) | known | control.intersection(after_assistant)
