"""Share partitions: what the members of share groups acquire and acknowledge (KIP-932, KIP-1191).

The state of the records is a pure `SharePartition` in `coord.share_partitions`. Here it is loaded from the share
coordinator and written there before it takes effect, locks expire, ShareFetches wait, sessions release their records,
and rejected records go to dead-letter queues. This package imports `coordinators`, `replicas`, `config` and
`event_loop` of the broker, and `coord`; only handlers use it.
"""
