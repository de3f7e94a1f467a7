"""Reads the imports of all modules and checks the arrows between the rooms of the project."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("chatbot", "retrieval", "prompts")

# A stage may import itself and those before it.
RETRIEVAL_ORDER = (
    "types", "missing",
    "slow_imports", "words", "sentences", "structure", "loaders", "load", "cleaning",
    "clean", "chunk", "model_source", "embed", "windows", "claims", "chunk_store", "exchange",
    "sketches", "vectors", "database", "frequencies", "tables", "term_renewal", "stored",
    "keywords", "index_exchange", "index", "bm25",
    "catalogue_tables", "catalogue_database", "catalogue_numbers", "catalogue_reading", "catalogue",
    "milvus_import", "milvus_link", "milvus_tables", "milvus_collections", "milvus_presence",
    "milvus_search", "milvus_place", "milvus_index", "milvus_exchange", "ranking", "search", "move",
    "rerank", "units", "cutting", "narrow", "context", "number_words", "unit_words",
    "calendar_words", "clock_times", "counted", "values", "places", "statements", "bindings",
    "dates", "persons", "subjects", "opposites", "polarity", "align", "picture", "unpack", "files",
    "ingest_reports", "ingest_rules", "ingest", "ingest_archive", "renewal", "pipeline",
)  # fmt: skip

SETTING_PARTS = ("chatbot.setting_faults", "chatbot.settings_")
DATA = ("chatbot.errors", "chatbot.messages", "chatbot.records", "retrieval.types")

# Module prefix -> the prefixes of ours that it may import. The longest matching prefix counts.
# None: anything. A module always may import its own room's parts under the same prefix.
ALLOWED: dict[str, tuple[str, ...] | None] = {
    "prompts": (),
    "retrieval.types": (),
    "chatbot.errors": (),
    "chatbot.messages": ("retrieval.types",),
    "chatbot.setting_faults": (),
    "chatbot.saved_settings": (),
    "chatbot.settings_": (),
    "chatbot.settings": ("chatbot.errors", "chatbot.saved_settings", *SETTING_PARTS),
    "chatbot.budget": ("chatbot.errors",),
    "chatbot.records": ("chatbot.errors", "chatbot.messages", "retrieval.types"),
    "chatbot.store_": (*DATA, "chatbot.titles", "retrieval.missing"),
    "chatbot.store": (*DATA, "chatbot.store_", "chatbot.titles"),
    "chatbot.engine": (
        *DATA,
        "chatbot.loopback",
        "chatbot.settings",
        "chatbot.words",
        "prompts",
        "retrieval.slow_imports",
    ),
    "chatbot.loopback": (),
    "chatbot.start": ("chatbot.cli",),
    "chatbot.cli": None,
    "chatbot.commands": None,
    "chatbot.services": None,
    "chatbot.parts": None,
    "chatbot.__main__": None,
    "app": None,
}

# Who alone may import a heavy library.
OWNERS = {
    "torch": tuple(
        f"chatbot.engine.{part}"
        for part in ("local", "local_reply", "local_samples", "loading", "decode", "sampling",
                     "device_memory", "kv_", "gguf_files", "kernels", "int8_linear",
                     "llama_step", "read_weights", "profiling",
                     "workshop")
    ),
    "gradio": ("chatbot.ui",),
    "pytest": ("chatbot.regression.pytest_plugin",),
}  # fmt: skip

# The builder's rooms, and that which tests the whole program: nobody else may know a concrete
# engine or the page.
BUILDERS = (
    "chatbot.cli",
    "chatbot.commands",
    "chatbot.services",
    "chatbot.parts",
    "chatbot.regression",
    "chatbot.__main__",
    "app",
)
SHARED_ENGINE_PARTS = (
    "chatbot.engine.base", "chatbot.engine.exchange", "chatbot.engine.ladder",
    "chatbot.engine.reach",
)  # fmt: skip

# Package name -> distribution, where they differ.
DISTRIBUTIONS = {
    "bs4": "beautifulsoup4",
    "faiss": "faiss-cpu",
    "grpc": "grpcio",
    "oxmsg": "python-oxmsg",
    "PIL": "pillow",
    "pptx": "python-pptx",
    "yaml": "pyyaml",
}


def modules() -> dict[str, Path]:
    """Every module of the program by its dotted name."""
    paths = [ROOT / "app.py"]
    for package in PACKAGES:
        paths += sorted((ROOT / package).rglob("*.py"))
    found = {}
    for path in paths:
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def imported(name: str) -> tuple[str, ...]:
    """Dotted names that a module imports, also inside functions."""
    return tuple(_imported(name))


def _imported(name: str) -> Iterator[str]:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import; write the full name"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module


def under(name: str, prefix: str) -> bool:
    """Whether `name` is `prefix` or lies below it; a prefix ending in _ covers a family."""
    return name == prefix or name.startswith(prefix if prefix.endswith("_") else prefix + ".")


def ours(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def test_a_module_imports_only_along_the_arrows() -> None:
    wrong = {}
    for name in MODULES:
        prefix = max((p for p in ALLOWED if under(name, p)), key=len, default=None)
        if prefix is None or ALLOWED[prefix] is None:
            continue
        allowed = (*(ALLOWED[prefix] or ()), prefix)
        ours_here = [i for i in imported(name) if ours(i)]
        wrong[name] = [i for i in ours_here if not any(under(i, a) for a in allowed)]
    assert len(wrong) > 100
    assert not any(wrong.values()), {name: those for name, those in wrong.items() if those}


def test_a_retrieval_stage_imports_only_earlier_stages() -> None:
    names = [n for n in MODULES if under(n, "retrieval") and n != "retrieval"]
    assert len(names) > 50
    for name in names:
        check_stage(name)


def check_stage(name: str) -> None:
    stage = name.split(".")[1]
    assert stage in RETRIEVAL_ORDER, f"give {stage} its place in RETRIEVAL_ORDER"
    place = RETRIEVAL_ORDER.index(stage)
    for target in imported(name):
        if not ours(target):
            continue
        assert under(target, "retrieval"), f"{name} must know nothing of {target}"
        other = target.split(".")[1] if "." in target else stage
        assert RETRIEVAL_ORDER.index(other) <= place, f"{name} must not import {target}"


def test_only_the_builder_knows_concrete_engines_and_the_page() -> None:
    names = [n for n in MODULES if under(n, "chatbot") and not any(under(n, b) for b in BUILDERS)]
    assert len(names) > 100
    for name in names:
        check_engine_and_page(name)


def check_engine_and_page(name: str) -> None:
    for target in imported(name):
        if under(target, "chatbot.ui"):
            assert under(name, "chatbot.ui"), f"{name} must not import {target}"
        if under(target, "chatbot.engine") and not under(name, "chatbot.engine"):
            shared = any(under(target, part) for part in SHARED_ENGINE_PARTS)
            assert shared or target == "chatbot.engine", f"{name} must not import {target}"


def test_heavy_libraries_are_imported_only_by_their_owners() -> None:
    for library, owners in OWNERS.items():
        users = [name for name in MODULES if any(under(i, library) for i in imported(name))]
        assert users, f"nobody imports {library} any more"
        wrong = [name for name in users if not any(under(name, owner) for owner in owners)]
        assert not wrong, f"{library} must not be imported by {wrong}"


def test_every_library_that_is_imported_is_pinned() -> None:
    pinned = {
        match[1].lower().replace("_", "-")
        for file in ("requirements.txt", "requirements-team.txt")
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines()
        if (match := re.match(r"([A-Za-z0-9._-]+)==[0-9][^ ]*$", line))
    }
    used = {
        target.partition(".")[0]: name
        for name in MODULES
        for target in imported(name)
        if not ours(target) and target.partition(".")[0] not in sys.stdlib_module_names
    }
    used.pop("pytest", None)  # its plugin is loaded by pytest only
    missing = {
        library: name
        for library, name in used.items()
        if DISTRIBUTIONS.get(library, library.replace("_", "-")).lower() not in pinned
    }
    assert not missing, f"imported but not pinned in requirements.txt: {missing}"
