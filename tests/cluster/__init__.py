"""Real clusters: processes of brokers and controllers, with faults (docs/contributing/project-tests.md)."""
