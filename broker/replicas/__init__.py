"""The partitions of this broker: their logs, high watermarks, flushes, retention, compaction and fetch sessions.

`Partition` appends and commits (`when_committed`); `Partitions.apply` opens and removes partitions as the metadata
image says. It imports `config`, `log_dir_failures` and `event_loop` of the broker, and `storage`; it uses neither
coordinators nor requests.
"""
