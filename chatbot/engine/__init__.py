"""Engines: what turns a prompt of token ids into a reply."""

import os

# Read once, when torch's thread pool is loaded, so it must be set before. Threads that spin while
# they wait take the cores from whatever else runs: with one rival program replies were 2.5 times
# slower than with threads that sleep. What a person has set stays.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
