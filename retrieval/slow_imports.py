"""Two locks: for imports that take seconds, and for reading models. Knows nothing of either.

Two threads that import overlapping parts of the same large library at once (the model in one, the
embedder in another) may see half-made modules or wait for each other. While transformers reads one
model, it exchanges parts of torch for the whole process, so that another one that is read at the
same time may stay without weights ("copy from device meta"). Under these locks they queue.
"""

from __future__ import annotations

import threading

SLOW_IMPORTS = threading.RLock()
READING_MODELS = threading.RLock()
