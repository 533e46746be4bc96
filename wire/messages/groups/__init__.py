"""Groups of each kind: membership, committed offsets, the state of share partitions, the consumers' own protocol."""
