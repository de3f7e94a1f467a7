"""Imported by every Python that a test starts (through PYTHONPATH): keeps it off the network."""

from netguard import refuse_outside

refuse_outside()
