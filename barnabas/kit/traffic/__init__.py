"""Requests and responses of a cluster's clients, decoded: recorded, changed by rules, and checked."""
