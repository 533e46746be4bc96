"""The cluster: brokers and nodes, where partitions are, moves of them, the quorum, the log directories."""
