"""The server-side assignors: pure functions that assign partitions to members (KIP-848, KIP-932).

Tests compare them with Kafka's classes (`compat/kafka/make_assignments.py`). Racks are ignored, as in Kafka 4.4. They
run in the loop, in one piece: 1,000 members that read 10,000 partitions of 100 topics are assigned in 12 ms, and in
0.15 s if each member reads another half of the topics.
"""
