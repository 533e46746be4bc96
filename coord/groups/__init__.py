"""Consumer groups and their offsets: one `GroupCoordinator` for each partition of `__consumer_offsets`."""
