"""Compaction in cleaner processes, and retention: what removes old records of this broker's partitions."""
