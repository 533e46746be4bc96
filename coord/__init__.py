"""State machines of the broker: groups, transactions, replication, cluster metadata. No loop, no network, no clock."""
