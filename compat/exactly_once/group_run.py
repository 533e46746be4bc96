"""A run with a plain group: a writer and two members that commit the records they have read, with any of the libraries.

At the end the group must have committed everything, and the checker compares the written values with the read ones.
"""

from __future__ import annotations

import time

from confluent_kafka import TopicPartition

from compat.exactly_once.run import PARTITIONS, Run, make_topic


class GroupRun(Run):
    """A writer and a group of two on one topic."""

    clients = ("read-0", "read-1", "write-0")
    step, step_name = "committed_offsets", "commit of offsets"

    def _make_topics(self) -> None:
        make_topic(self.server.bootstrap, self.source)

    def _drain(self) -> None:
        """Stop the writer, wait until the group has read everything, and stop it."""
        self.stop_writing()
        group = f"copy-{self.outcome.seed}-readers"
        consumer = self._consumer("read_uncommitted", group)
        partitions = [TopicPartition(self.source, index) for index in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(partition, 30)[1] for partition in partitions]

        def has_read_all() -> bool:
            since = time.monotonic()
            offsets = [partition.offset for partition in consumer.committed(partitions, 30)]
            rows = [[self.source, index, max(-1, offset)] for index, offset in enumerate(offsets)]
            self.driver.write("fetched_offsets", group=group, offsets=rows, since=since)
            return [max(0, offset) for offset in offsets] == ends

        self._wait(has_read_all, f"the group has not committed {ends}")
        consumer.close()
        self._stop_clients()

    def _topics_to_read(self) -> tuple[str, ...]:
        return (self.source,)
