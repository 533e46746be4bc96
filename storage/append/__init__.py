"""Appends to a log: checks batches, assigns offsets, takes over a leader's batches, makes them durable (L1, R1)."""
