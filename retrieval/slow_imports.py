"""One lock for imports that take seconds. Knows nothing of what is imported.

Two threads that import overlapping parts of the same large library at once (the model in one, the
embedder in another) may see half-made modules or wait for each other; under this lock they queue.
"""

from __future__ import annotations

import threading

SLOW_IMPORTS = threading.RLock()
