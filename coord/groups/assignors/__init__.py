"""Who of a group reads which partitions: the assignors that run in the coordinator (KIP-848, KIP-932)."""
