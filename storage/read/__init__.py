"""Reads a log: batches by offset, offsets by timestamp, headers of a slice."""
