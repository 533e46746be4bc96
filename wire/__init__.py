"""Kafka's wire protocol: bytes to typed messages and back, record batches; no I/O, no clock."""
