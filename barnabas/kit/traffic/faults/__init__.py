"""Faults by rule: errors, delays and lost connections for the clients' requests that a rule concerns."""
