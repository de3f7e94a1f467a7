"""The page: Gradio Blocks over `Chat`. Events to widgets, no decisions."""

import os

# Set before anything here imports gradio: no questions to the network about the library itself,
# and no statistics of its events, which take a data frame's time after each of them.
QUIET = {"GRADIO_ANALYTICS_ENABLED": "False", "GRADIO_ANALYTICS_CACHE_FREQUENCY": "1000000000"}
os.environ.update(QUIET)
