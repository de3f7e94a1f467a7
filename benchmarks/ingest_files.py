"""Reads every file below a folder, as an upload would be, and compares with reference texts.

`python -m benchmarks.ingest_files DIR... --json`. A reference is a Markdown file named after its
source (`report.docx.md` in a folder `groundtruth` beside `sources`, or `report.docx.md` beside the
file). Word recall is the share of the reference's words that came out, counted with repeats.
The last line is JSON: `files`, `status` (counts), `word_recall` by format, `slowest_s`, `slowest`,
`errors` (sentence -> count).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean

from retrieval.pipeline import Library
from retrieval.types import IngestReport

_WORD = re.compile(r"\w+")
_IMAGE = re.compile(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", re.DOTALL)
_ADDRESS = re.compile(r"\]\([^)]*\)")
_TAG = re.compile(r"</?\w+[^>]*>|&[a-z]+;|\$+|\\[a-z]*")


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each file with a problem, then the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    parser.add_argument("--worst", type=float, default=0.9, help="show files below this recall")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        library = Library(Path(folder), embedder=None, count_tokens=lambda text: len(text) // 4 + 1)
        with closing(library):
            print(json.dumps(measure(library, arguments), ensure_ascii=False))
    return 0


def measure(library: Library, arguments: argparse.Namespace) -> dict[str, object]:
    """Read all files, one by one."""
    status: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    recalls: defaultdict[str, list[float]] = defaultdict(list)
    slowest = (0.0, "")
    for path, name in _files(arguments.paths):
        started_s = time.perf_counter()
        report = library.ingest(path, name=name)
        slowest = max(slowest, (time.perf_counter() - started_s, name))
        status[report.status] += 1
        if report.status == "error":
            errors[report.message] += 1
        reference = _reference(path)
        if reference is not None and report.status != "error":
            share = _recall(reference, _text(library, report))
            recalls[path.suffix.lower().lstrip(".")].append(share)
            if share < arguments.worst and not arguments.json:
                print(f"{share:.3f}  {name}")
        elif report.status != "indexed" and not arguments.json:
            print(f"{report.status:<7} {name}  {report.message}")
    return {
        "files": status.total(),
        "status": dict(status),
        "word_recall": {kind: round(mean(found), 4) for kind, found in sorted(recalls.items())},
        "compared": {kind: len(found) for kind, found in sorted(recalls.items())},
        "slowest_s": round(slowest[0], 2),
        "slowest": slowest[1],
        "errors": dict(errors),
    }


def _files(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """All files but references and what describes the collection itself."""
    found = []
    for root in paths:
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if path.is_file() and "groundtruth" not in inside.parts and _source_of(path) is None:
                found.append((path, f"{root.name}/{inside.as_posix()}"))
    return found


def _source_of(path: Path) -> Path | None:
    source = path.with_suffix("")
    return source if path.suffix == ".md" and source.suffix and source.is_file() else None


def _reference(path: Path) -> str | None:
    folder = path.parent.parent / "groundtruth"
    beside = path.parent / f"{path.name}.md"
    for reference in (beside, folder / f"{path.name}.md", folder / f"{path.stem}.md"):
        if reference.is_file() and reference != path:
            return reference.read_text(encoding="utf-8")
    return None


def _text(library: Library, report: IngestReport) -> str:
    return library.document_text(report.document_id) if report.document_id else ""


def _recall(reference: str, text: str) -> float:
    wanted, there = Counter(_words(reference)), Counter(_words(text))
    total = wanted.total()
    return (wanted & there).total() / total if total else 1.0


def _words(text: str) -> list[str]:
    plain = _TAG.sub(" ", _ADDRESS.sub("]", _IMAGE.sub(" ", text)))
    return _WORD.findall(plain.casefold().replace("_", " "))


if __name__ == "__main__":
    raise SystemExit(main())
