"""Fetch and ListOffsets: read record batches and offsets of partitions."""
