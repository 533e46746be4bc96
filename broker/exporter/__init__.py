"""The exporter: the HTTP endpoint that shows metrics of the broker, and those that clients push, to Prometheus.

Nothing of it is imported by a start without `barnabas.metrics.listener`. What the broker counts while it serves is in
`broker.metrics`.
"""
