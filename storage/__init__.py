"""Logs of partitions on disk, in Kafka's format: synchronous, without event loop, network or clock.

`log.py` is a partition's log, `local_log.py` its segments and their durability. The rooms:

- `append`: checks batches, assigns offsets, appends the batches of a leader, keeps leader epochs, makes data durable;
- `producers`: the state of idempotent and transactional producers, and its snapshots;
- `segments`: the files of a segment and their indexes;
- `read`: batches by offset, offsets by timestamp;
- `recover`: loads a log, checks it after an unclean stop, truncates it, completes what a crash has interrupted;
- `directories`: log directories with their checkpoints, and moves between them;
- `cleaning`: retention and compaction;
- `checking`: check and repair for operators.

All system calls on files are in `files.py`. No room imports `broker` or `coord`.
"""
