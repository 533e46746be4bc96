"""Real clusters: processes of brokers and controllers, with faults (docs/project-tests.md)."""
