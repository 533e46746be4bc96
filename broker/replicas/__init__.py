"""The partitions of this broker: their logs, high watermarks, flushes, retention, compaction and fetch sessions.

Appends, commitment (`Partition.when_committed`) and what happens to a failed disk are here; which partitions exist is
the metadata's business, which `Partitions.apply` follows. It imports `config`, `log_dir_failures`, `loop` and
`timers` of the broker, and `storage`; it knows neither coordinators nor requests.
"""
