"""The cluster metadata: an image replayed from KRaft records, and the controller that creates the records.

`image.py` is the image, with `broker_image.py` and `topic_image.py`; `delta.py` is what a replay has changed.
`local_controller.py` is the controller of a single node, `cluster_controller.py` the controller of several. The rooms:

- `metadata_log`: batches and checkpoints of the log, and the replay of its records;
- `changes`: what operators change: topics, configs, ACLs, quotas, features;
- `partitions`: leaders, ISR, ELR, reassignments;
- `brokers`: registrations, heartbeats, sessions, log directories.
"""
