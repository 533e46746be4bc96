"""Metrics: what clients push (KIP-714), and the HTTP endpoint that shows it with a few figures of the broker.

Nothing of it is imported by a start without `barnabas.metrics.listener`, or before the first request of telemetry.
"""
