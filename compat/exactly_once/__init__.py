"""Exactly-once copies by real clients that write histories, while they and the broker are killed: see README.md."""
