"""Checks and repairs a log directory that no broker is using (rule L2)."""
