"""Measurements that anyone can run again; each prints one JSON line last."""
