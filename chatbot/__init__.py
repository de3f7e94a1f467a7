"""The chatbot: conversation memory, context budgeting and a bounded engine."""

__version__ = "0.1.0"
