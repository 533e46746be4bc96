"""Exactly-once copies by real clients that write histories, while the clients and the broker are killed (README.md)."""
