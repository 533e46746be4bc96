"""Commands that are stopped as `timeout`, systemd and containers do: SIGTERM to all of their processes."""
