"""One partition's log on disk, in Kafka's format: synchronous files, no loop, no network, no clock."""
