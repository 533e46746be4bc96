"""Faults by rule: what happens to the requests of a cluster's clients that a rule concerns."""
