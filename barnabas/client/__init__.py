"""A synchronous Kafka client on blocking sockets, on the client side of `barnabas.wire`.

    connection.py  one socket: version negotiation, pipelined requests, replies in order
    cluster.py     bootstrap, metadata, a connection per node, retries until a deadline
    producer.py    accumulator, partitioning, batches in flight, idempotence
    reader.py      fetching from partitions
    admin.py       topics, groups, configs, offsets

It is used by the command line and by programs without an event loop. Not thread-safe.
"""

from __future__ import annotations
