"""Metrics: what a broker counts while it serves, and what clients push (KIP-714).

Nothing of it is imported by a start without `barnabas.metrics.listener`, or before the first request of telemetry.
`broker.exporter` shows it.
"""
