"""The program as an OpenAI-compatible server. Knows no page and no concrete engine."""
