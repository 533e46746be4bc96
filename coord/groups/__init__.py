"""Groups of all types and their offsets: one `GroupCoordinator` for each partition of `__consumer_offsets`."""
