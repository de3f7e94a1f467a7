"""The files of a ZIP archive into the index. Knows no format of what is in them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from retrieval.ingest import Ingestor
from retrieval.load import LoadLimits
from retrieval.types import IngestReport
from retrieval.unpack import Unpacked, unpack


def ingest_archive(
    path: Path, name: str, ingestor: Ingestor, limits: LoadLimits
) -> Iterator[IngestReport]:
    """A report for each file of an archive that is called `name`, first those not to be had."""
    with tempfile.TemporaryDirectory(prefix="archive-") as folder:
        parts = list(unpack(path, name, Path(folder), limits))
        yield from (part for part in parts if isinstance(part, IngestReport))
        files = [part for part in parts if isinstance(part, Unpacked)]
        reports = ingestor.run([(file.path, file.name) for file in files])
        for file, report in zip(files, reports, strict=True):
            yield replace(report, message=" ".join(filter(None, (file.note, report.message))))
