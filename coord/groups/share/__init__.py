"""Share groups, whose members may read the same partitions, each record by one of them (KIP-932)."""
