"""The share coordinator: what is kept of the partitions that share groups read (KIP-932)."""
