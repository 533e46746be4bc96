"""Client telemetry (KIP-714): which clients push which metrics and when, and the latest values of each client.

Pure: time and identities are arguments. Source: Kafka 4.4 `ClientMetricsManager`, `ClientMetricsConfigs`.
"""
