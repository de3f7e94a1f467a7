"""Old turns found by their meaning; vectors are kept, renewed, dropped and never waited for."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from chatbot.messages import Conversation, Message, Turn
from chatbot.recall_indexes import RecallIndexes
from chatbot.recall_vectors import RecallVectors, digest
from retrieval.embed import Embedder, ScriptedEmbedder, Vectors
from retrieval.types import RetrievalError
from retrieval.words import lexical_terms

SAME = {"tabby": "pet", "dog": "pet", "rent": "flat", "landlord": "flat"}


class Synonyms(ScriptedEmbedder):
    """Knows what some words mean, and nothing of all others."""

    def __init__(self, name: str = "synonyms", **more: object) -> None:
        super().__init__(name=name, **more)  # type: ignore[arg-type]
        self.queries: list[str] = []

    def embed_query(self, text: str) -> Vectors:
        self.queries.append(text)
        return super().embed_query(text)

    def _rows(self, texts: list[str]) -> Vectors:  # type: ignore[override]
        known = [[SAME.get(t, t) for t in lexical_terms(text)] for text in texts]
        kept = [" ".join(t for t in terms if t in SAME.values()) for terms in known]
        return super()._rows([words or text for words, text in zip(kept, texts, strict=True)])


class Broken(Synonyms):
    def embed_documents(self, texts: list[str]) -> Vectors:
        raise RetrievalError("The embedding model cannot be loaded.")


def words(text: str) -> int:
    return len(text.split())


def turn(number: int, question: str, reply: str = "Noted.") -> Turn:
    user = Message(f"u{number}", "user", question)
    return Turn(f"t{number}", (user,), (Message(f"a{number}", "assistant", reply),))


def chat(*facts: str, filler: int = 40) -> Conversation:
    turns = [turn(n, f"Let us talk about hobby {n} of my sister.") for n in range(filler)]
    for number, fact in enumerate(facts):
        turns[3 + 4 * number] = turn(3 + 4 * number, fact)
    return Conversation("c1", turns=tuple(turns))


CHAT = chat("Her tabby is called Miso.")
QUESTION = "What pet does my sister own?"


def best(indexes: RecallIndexes, conversation: Conversation, question: str) -> list[str]:
    return [e.message.id for e in indexes.of(conversation).search(question, limit_tokens=60)]


def test_a_fact_that_shares_no_word_with_the_question_is_found_by_meaning() -> None:
    indexes = RecallIndexes(words, RecallVectors(Synonyms()))
    assert "u3" not in best(indexes, CHAT, QUESTION)
    indexes.embed(CHAT)
    assert best(indexes, CHAT, QUESTION)[0] == "u3"


def test_the_model_is_left_alone_as_long_as_there_is_nothing_to_compare() -> None:
    embedder = Synonyms()
    indexes = RecallIndexes(words, RecallVectors(embedder))
    best(indexes, CHAT, QUESTION)
    assert (embedder.queries, embedder.embedded) == ([], [])


def test_turns_without_a_vector_yet_are_found_by_their_words() -> None:
    indexes = RecallIndexes(words, RecallVectors(Synonyms()))
    indexes.embed(CHAT)
    longer = Conversation("c1", turns=(*CHAT.turns, turn(90, "The harbour pilot is Quentin.")))
    assert best(indexes, longer, "Who is the harbour pilot?")[0] == "u90"
    assert best(indexes, longer, QUESTION)[0] == "u3"


def test_an_english_only_model_has_no_say_in_korean() -> None:
    embedder = Synonyms(english_only=True)
    indexes = RecallIndexes(words, RecallVectors(embedder))
    conversation = chat("여동생은 서울로 이사했다.", "The tabby lives in Busan.")
    indexes.embed(conversation)
    assert "여동생은 서울로 이사했다." not in embedder.embedded
    assert best(indexes, conversation, "여동생은 어디로 이사했어?")[0] == "u3"
    assert embedder.queries == []


def test_vectors_are_kept_from_one_run_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    first = RecallVectors(Synonyms(), path)
    RecallIndexes(words, first).embed(CHAT)
    scores = [e.score for e in RecallIndexes(words, first).of(CHAT).search(QUESTION)]
    first.close()
    embedder = Synonyms()
    second = RecallVectors(embedder, path)
    indexes = RecallIndexes(words, second)
    assert best(indexes, CHAT, QUESTION)[0] == "u3"
    assert [e.score for e in indexes.of(CHAT).search(QUESTION)] == scores
    indexes.embed(CHAT)
    assert embedder.embedded == []
    second.close()


def test_vectors_of_another_model_are_not_used_and_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    old = RecallVectors(Synonyms(name="old"), path)
    RecallIndexes(words, old).embed(CHAT)
    old.close()
    embedder = Synonyms(name="new", dimensions=32)
    new = RecallVectors(embedder, path)
    assert not new.known("c1")
    RecallIndexes(words, new).embed(CHAT)
    assert "Her tabby is called Miso." in embedder.embedded
    assert all(len(vector) == 32 for vector in new.known("c1").values())
    new.close()


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    path.write_bytes(b"this is no database" * 400)
    vectors = RecallVectors(Synonyms(), path)
    indexes = RecallIndexes(words, vectors)
    indexes.embed(CHAT)
    assert best(indexes, CHAT, QUESTION)[0] == "u3"
    vectors.close()
    again = RecallVectors(Synonyms(), path)
    assert again.known("c1")
    again.close()


def test_a_forgotten_turn_in_the_middle_leaves_words_and_vectors(tmp_path: Path) -> None:
    vectors = RecallVectors(Synonyms(), tmp_path / "recall.db")
    indexes = RecallIndexes(words, vectors)
    indexes.embed(CHAT)
    left = Conversation("c1", turns=CHAT.turns[:3] + CHAT.turns[4:])
    indexes.keep_only(left)
    assert "u3" not in best(indexes, left, QUESTION)
    assert best(indexes, left, "Miso tabby") == []
    key = digest("Her tabby is called Miso.")
    assert key not in vectors.known("c1")
    vectors.close()
    again = RecallVectors(Synonyms(), tmp_path / "recall.db")
    assert again.known("c1") and key not in again.known("c1")
    again.forget("c1")
    assert not again.known("c1")
    again.close()


def test_a_deleted_chat_leaves_no_vector_in_the_file(tmp_path: Path) -> None:
    vectors = RecallVectors(Synonyms(), tmp_path / "recall.db")
    indexes = RecallIndexes(words, vectors)
    indexes.embed(CHAT)
    some = next(iter(vectors.known("c1").values())).tobytes()
    files = list(tmp_path.iterdir())
    assert any(some in file.read_bytes() for file in files)
    indexes.forget("c1")
    vectors.close()
    assert not any(some in file.read_bytes() for file in tmp_path.iterdir())


def test_embedding_stops_when_it_is_told_to() -> None:
    embedder = Synonyms()
    stop = threading.Event()
    stop.set()
    RecallIndexes(words, RecallVectors(embedder)).embed(CHAT, stop=stop)
    assert embedder.embedded == []


def test_with_a_limit_the_users_own_short_words_come_first() -> None:
    embedder = Synonyms()
    long = turn(50, "word " * 60)
    conversation = Conversation("c1", turns=(long, *CHAT.turns))
    RecallIndexes(words, RecallVectors(embedder)).embed(conversation, limit_tokens=50)
    assert "Her tabby is called Miso." in embedder.embedded
    assert sum(words(text) for text in embedder.embedded) <= 50
    assert "Noted." not in embedder.embedded


def test_a_model_that_cannot_be_loaded_leaves_the_words(caplog: pytest.LogCaptureFixture) -> None:
    indexes = RecallIndexes(words, RecallVectors(Broken()))
    indexes.embed(CHAT)
    indexes.embed(CHAT)
    assert best(indexes, CHAT, "tabby Miso")[0] == "u3"
    assert caplog.text.count("by their words only") == 1


def test_a_model_whose_cosines_are_all_high_still_tells_texts_apart() -> None:
    class Narrow(Synonyms):
        """Like E5: all vectors point nearly the same way."""

        def _rows(self, texts: list[str]) -> Vectors:  # type: ignore[override]
            rows = np.concatenate([0.5 * super()._rows(texts), np.ones((len(texts), 1))], axis=1)
            return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    indexes = RecallIndexes(words, RecallVectors(Narrow()))
    indexes.embed(CHAT)
    assert best(indexes, CHAT, QUESTION)[0] == "u3"


@pytest.mark.model
@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("Her tabby is called Miso.", "What pet does my sister own?"),
        ("We tied the knot in Venice back in 2011.", "Where did I get married?"),
        ("I can't have peanuts, my throat swells up.", "Which food am I allergic to?"),
        ("Dad used to drive a bus in Glasgow.", "What was my father's job?"),
        ("The doctor put me on metformin.", "What medicine do I take?"),
    ],
)
def test_paraphrases_are_found_with_the_real_model(
    demo_embedder: Embedder, fact: str, question: str
) -> None:
    assert not set(lexical_terms(fact)) & (set(lexical_terms(question)) - {"my", "i", "did"})
    turns = [turn(n, text) for n, text in enumerate(FILLER)]
    turns[4] = turn(4, fact)
    conversation = Conversation("c1", turns=tuple(turns))
    indexes = RecallIndexes(words, RecallVectors(demo_embedder))
    assert "u4" not in best(indexes, conversation, question)[:3]
    indexes.embed(conversation)
    assert "u4" in best(indexes, conversation, question)[:3]


FILLER = (
    "I want to learn how to bake sourdough bread at home.",
    "What did you think of the film about the lighthouse?",
    "Which laptop should I get for drawing?",
    "The train to work was late again where I live.",
    "",
    "I take the stairs every day now.",
    "Where can I get good running shoes?",
    "My sister and I own a small boat.",
    "What job does a surveyor do?",
    "Which food goes well with white wine?",
    "I did get a new lamp for the desk.",
    "What was the name of that song?",
)
