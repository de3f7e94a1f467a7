"""Engines: what turns a prompt of token ids into a reply."""
