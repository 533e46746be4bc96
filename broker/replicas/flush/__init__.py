"""Flushes before records are acknowledged and read: the policy of a partition, and one flush for many requests."""
