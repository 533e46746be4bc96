"""Share groups: members that share the records of partitions out among them (KIP-932)."""
