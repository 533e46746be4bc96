"""One partition's log on disk, in Kafka's format: synchronous, without event loop, network or clock."""
