"""Transactions and producers: ids, partitions and offsets in a transaction, markers, verification."""
