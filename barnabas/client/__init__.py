"""Our own Kafka client: synchronous, on plain blocking sockets, speaking through `wire`'s client side.

    connection.py  one socket: version negotiation, pipelined requests, replies in order
    cluster.py     bootstrap, metadata, a connection a node, retries until a deadline
    producer.py    accumulator, partitioning, batches in flight, idempotence
    reader.py      fetching from partitions
    admin.py       topics, groups, configs, offsets

It serves the command line and whoever wants to talk to a broker without an event loop. Not thread-safe.
"""

from __future__ import annotations
