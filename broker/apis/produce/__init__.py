"""Produce: append record batches to partitions."""
