"""The server-side assignors: pure functions that assign partitions to members (KIP-848, KIP-932)."""
