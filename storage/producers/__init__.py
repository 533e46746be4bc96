"""Idempotent and transactional producers of a partition: their state and its snapshots (I1 to I7)."""
