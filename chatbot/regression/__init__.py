"""The conversation regression suite: suites in YAML, run over `Chat`, compared with earlier runs.

Imports neither the page nor a model library; the engine comes from `target`.
"""
