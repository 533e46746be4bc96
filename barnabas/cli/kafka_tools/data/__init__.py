"""Kafka's tools that read and write records, offsets and segment files."""
