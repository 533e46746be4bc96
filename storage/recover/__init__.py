"""Loads and truncates a log; after an unclean stop its tail is checked (L1, L2)."""
