"""Real clusters: processes of brokers and controllers, with faults (docs/testing.md)."""
