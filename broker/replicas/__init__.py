"""The partitions of this broker: their logs at work, what is committed, retention and compaction."""
