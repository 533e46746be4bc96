"""The common parts of consumer and streams groups, and some for share groups (KIP-848, KIP-932, KIP-1071)."""
