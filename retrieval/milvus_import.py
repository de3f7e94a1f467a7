"""Imports Milvus' client, which takes a second, so that nothing else changes. Knows no address.

On import it would read a `.env` file and print its log with tracebacks; both are kept from it here.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from typing import Any

from retrieval.missing import needs_package
from retrieval.slow_imports import SLOW_IMPORTS
from retrieval.types import RetrievalError

_LOUD = (
    *("pymilvus", "pymilvus.milvus_client", "pymilvus.bulk_writer", "milvus_lite"),
    "grpc._server",  # of milvus-lite, for each call that it does not know
)


def import_milvus(*, for_file: bool = False) -> tuple[Any, Any]:
    """The client and its error. `for_file`: to open a file rather than to reach a server.

    Raises RetrievalError where a package is missing.
    """
    if for_file and importlib.util.find_spec("milvus_lite") is None:
        raise RetrievalError(needs_package("--vector-url", "milvus-lite"))
    with SLOW_IMPORTS:
        before = os.environ.get("PYTHON_DOTENV_DISABLED")
        os.environ["PYTHON_DOTENV_DISABLED"] = "1"
        try:
            from pymilvus import MilvusClient, MilvusException
        except ImportError as error:
            package = error.name or "pymilvus"
            raise RetrievalError(needs_package("--vector-url", package)) from error
        finally:
            if before is None:
                del os.environ["PYTHON_DOTENV_DISABLED"]
            else:
                os.environ["PYTHON_DOTENV_DISABLED"] = before
        for name in _LOUD:
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True
            logger.setLevel(logging.CRITICAL)  # what it says is raised, too
    return MilvusClient, MilvusException
