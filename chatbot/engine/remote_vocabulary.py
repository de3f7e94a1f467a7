"""A vocabulary that is at the server: texts to ids and back by requests. Knows no prompt.

For servers that tell ids and take them: vLLM and SGLang, and llama.cpp's own server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from chatbot.engine.base import ChatFormat
from chatbot.engine.chat_format import Vocabulary, build_format
from chatbot.engine.chat_template import ControlTexts, TemplateUnusableError, rendered_texts
from chatbot.engine.defuse import split_any
from chatbot.engine.remote_believed import may_have
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.text_codec import cached
from chatbot.errors import NoAnswerError, TokenizerError

_CONTROL = re.compile(r"<[^<>\s]{1,80}>|\[/?[A-Z_]{2,30}\]")


MOST_ID = (1 << 24) - 1
"""No vocabulary is so large."""


class ServerVocabulary(Protocol):
    """What a server's vocabulary can be asked."""

    def ids(self, text: str, *, control: bool) -> tuple[int, ...]:
        """Ids without begin or end tokens. `control`: control tokens in `text` are read as such."""
        ...

    def text(self, token_ids: Sequence[int]) -> str: ...

    def template(self) -> ControlTexts | str | None:
        """The server's chat template, taken apart or as it is written; None if it tells none."""
        ...

    def bos_id(self) -> int | None:
        """The begin token, where the server would put it before a text by itself."""
        ...


class LlamaCppVocabulary:
    """llama.cpp's server: /tokenize, /detokenize, /apply-template."""

    def __init__(self, client: RemoteClient) -> None:
        self._client = client

    def ids(self, text: str, *, control: bool) -> tuple[int, ...]:
        """See `ServerVocabulary`."""
        body = {"content": text, "add_special": False, "parse_special": control}
        return _ids(self._client, body, None if control else text)

    def text(self, token_ids: Sequence[int]) -> str:
        """See `ServerVocabulary`."""
        body = {"tokens": list(token_ids)}
        return str(_asked(self._client, "/detokenize", body, "content"))

    def template(self) -> ControlTexts | str | None:
        """See `ServerVocabulary`."""

        def render(messages: list[dict[str, str]]) -> str:
            return str(_asked(self._client, "/apply-template", {"messages": messages}, "prompt"))

        try:
            return rendered_texts(render)
        except (TemplateUnusableError, TokenizerError):
            props = self._client.ask("/props") or {}
            written = props.get("chat_template")
            return written if isinstance(written, str) else None

    def bos_id(self) -> int | None:
        """See `ServerVocabulary`."""
        body = {"content": "a", "add_special": True, "parse_special": False}
        ids, bare = _ids(self._client, body), self.ids("a", control=False)
        return ids[0] if len(ids) > len(bare) else None


class VllmVocabulary:
    """vLLM's server, and SGLang's, which copies it: /tokenize reads all markers as control."""

    def __init__(self, client: RemoteClient, model: str) -> None:
        self._client = client
        self._model = model

    def ids(self, text: str, *, control: bool) -> tuple[int, ...]:
        """See `ServerVocabulary`. As text, markers are encoded in two halves."""
        pieces = [text] if control else split_any(text)
        return tuple(i for piece in pieces for i in self._piece(piece, control=control))

    def text(self, token_ids: Sequence[int]) -> str:
        """See `ServerVocabulary`."""
        body = {"model": self._model, "tokens": list(token_ids)}
        return str(_asked(self._client, "/detokenize", body, "prompt"))

    def template(self) -> ControlTexts | str | None:
        """See `ServerVocabulary`."""

        def render(messages: list[dict[str, str]]) -> str:
            body: dict[str, Any] = {"model": self._model, "messages": messages}
            body |= {"add_generation_prompt": True, "add_special_tokens": False}
            body |= {"chat_template_kwargs": {"enable_thinking": False}}
            return self.text(_ids(self._client, body))

        try:
            return rendered_texts(render)
        except (TemplateUnusableError, TokenizerError):
            return None

    def bos_id(self) -> int | None:
        """None: the template writes it, and nothing else does."""
        return None

    def _piece(self, text: str, *, control: bool) -> tuple[int, ...]:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return _ids(self._client, body, None if control else text) if text else ()


class ServerTokenizer:
    """See `ChatTokenizer`. Each text that is not known yet is a request."""

    estimated = False

    def __init__(self, name: str, vocabulary: ServerVocabulary) -> None:
        """Raises TemplateUnusableError where the server tells no chat template."""
        self.name = name
        self._vocabulary = vocabulary
        self.forget()
        template = vocabulary.template()
        if template is None:
            raise TemplateUnusableError("the server tells no chat template")
        bos = vocabulary.bos_id()
        self.control_texts = self._control_texts(template)
        self.chat_format: ChatFormat
        self.chat_format, self.format_warning = build_format(
            Vocabulary(
                encode_text=self.encode,
                encode_control=lambda text: vocabulary.ids(text, control=True),
                control_tokens=self.control_texts,
                bos_id=bos,
                adds_bos=bos is not None,
            ),
            template,
            named_tokens={},
        )
        self.control_ids = frozenset(self.control_texts.values()) | self.chat_format.stop_ids

    def forget(self) -> None:
        """Ask the server anew for every text: it does not take what it had told."""
        vocabulary = self._vocabulary
        self.encode = cached(lambda text: vocabulary.ids(text, control=False) if text else ())

    def decode(self, token_ids: Sequence[int]) -> str:
        """See `ChatTokenizer.decode`."""
        plain = [i for i in token_ids if i not in self.control_ids]
        return self._vocabulary.text(plain) if plain else ""

    def _control_texts(self, template: ControlTexts | str) -> dict[str, int]:
        """The control tokens that the template writes."""
        found: dict[str, int] = {}
        if isinstance(template, ControlTexts):
            parts = (template.begin, template.after_system, template.after_user)
            template = " ".join((*parts, template.after_assistant, template.end))
        for marker in sorted(set(_CONTROL.findall(template))):
            ids = self._vocabulary.ids(marker, control=True)
            if len(ids) == 1:
                found[marker] = ids[0]
        return found


def _ids(client: RemoteClient, body: dict[str, Any], text: str | None = None) -> tuple[int, ...]:
    """`text` is what is encoded as text alone, if it is. Raises TokenizerError for ids that cannot
    be: they would be kept, and with them every later prompt would be wrong."""
    answer = _answer(client, "/tokenize", body, "tokens")
    found, count = answer["tokens"], answer.get("count")
    if not isinstance(found, list) or not all(type(i) is int for i in found):
        raise TokenizerError(f"The server {client.shown} gives no token ids; restart it.")
    in_range = all(0 <= i <= MOST_ID for i in found)
    as_counted = type(count) is not int or count == len(found)
    if not in_range or not as_counted or (text is not None and not may_have(text, len(found))):
        raise TokenizerError(
            f"The server {client.shown} gives token ids that cannot be; ask again, and restart it "
            "if this goes on."
        )
    return tuple(found)


def _asked(client: RemoteClient, path: str, body: dict[str, Any], key: str) -> Any:
    return _answer(client, path, body, key)[key]


def _answer(client: RemoteClient, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
    try:
        answer = client.ask(path, body)
    except NoAnswerError as error:
        # Before a prompt is made: nothing is stored yet, and the question goes back.
        raise TokenizerError(str(error)) from error
    if answer is None or key not in answer:
        message = f"The server {client.shown} does not count tokens; look whether it still works."
        raise TokenizerError(message)
    return answer
