"""T11: a group that has only offsets of open transactions exists, and what is deleted of it stays deleted (KIP-447).

The expectations are Apache Kafka's: `--against kafka` runs them there.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from barnabas.wire.messages import produce as p
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from tests.support.requests.raw_client import MOVING, RawClient
from tests.support.waiting import wait_for

EMPTY = ("Empty", "classic", "")
UNSTABLE, NO_OFFSET, GROUP_ID_NOT_FOUND = 88, -1, 69
OFFSET = 7
IN_PROGRESS = 51
"""CONCURRENT_TRANSACTIONS: the transaction before is being ended."""


class Transaction:
    """A transaction that commits offsets of partition 0 and 1 of a topic, and what one sees of its groups."""

    def __init__(self, client, name, topic):
        self.client, self.name, self.topic = client, name, topic
        find = g.FindCoordinatorRequest(coordinator_keys=[name], key_type=1)
        self._ask(find, 6, lambda answer: answer.coordinators[0].error_code)
        init = p.InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        producer = self._ask(init, 5, lambda answer: answer.error_code)
        self.id_and_epoch = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}

    def _ask(self, request, version, error_of):
        """The answer without an error, which it has while a coordinator is loaded."""

        def answered():
            answer = self.client(request, version)
            assert error_of(answer) in {0, *MOVING, IN_PROGRESS}, answer
            return None if error_of(answer) else answer

        return wait_for(answered, "the coordinator of the transaction")

    def commit(self, group, *partitions):
        self.client.find(group)
        offsets = [
            t.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=OFFSET, committed_metadata="")
            for index in partitions
        ]
        request = t.TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            topics=[t.TxnOffsetCommitRequestTopic(name=self.topic, partitions=offsets)],
            **self.id_and_epoch,
        )
        answer = self._ask(request, 5, lambda answer: answer.topics[0].partitions[0].error_code)
        assert not any(partition.error_code for partition in answer.topics[0].partitions)

    def end(self, *, commit):
        request = t.EndTxnRequest(transactional_id=self.name, committed=commit, **self.id_and_epoch)
        self._ask(request, 5, lambda answer: answer.error_code)


def listed(client, group):
    groups = client(g.ListGroupsRequest(), 5).groups
    return next(
        ((item.group_state, item.group_type, item.protocol_type) for item in groups if item.group_id == group), None
    )


def described(client, group):
    (answer,) = client(g.DescribeGroupsRequest(groups=[group]), 6).groups
    return answer.error_code or answer.group_state


def deleted(client, group):
    (answer,) = client(g.DeleteGroupsRequest(groups_names=[group]), 2).results
    return answer.error_code


def offset_deleted(client, group, topic, partition):
    partitions = [o.OffsetDeleteRequestPartition(partition_index=partition)]
    topics = [o.OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    return client(o.OffsetDeleteRequest(group_id=group, topics=topics), 0).error_code


def offsets(client, group, topic):
    """The offset of partition 0 and of 1, or UNSTABLE."""
    topics = [o.OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])]
    request = o.OffsetFetchRequest(
        groups=[o.OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True
    )
    (answer,) = client(request, 9).groups
    return [partition.error_code or partition.committed_offset for partition in answer.topics[0].partitions]


@pytest.fixture
def client(broker):
    client = RawClient(broker.bootstrap)
    yield client
    client.close()


def test_a_group_of_an_open_transaction_is_there_and_can_be_deleted(client, topic_name):
    topic = topic_name()
    client.create_topic(topic, 2)
    kept, gone, aborted, unknown = (topic_name(stem) for stem in ("kept", "gone", "aborted", "unknown"))
    transaction = Transaction(client, topic_name("x"), topic)
    for group in (kept, gone):
        transaction.commit(group, 0, 1)
        assert (listed(client, group), described(client, group)) == (EMPTY, "Empty")
        assert offsets(client, group, topic) == [UNSTABLE, UNSTABLE]
    assert offset_deleted(client, kept, topic, 0) == 0
    assert offsets(client, kept, topic) == [NO_OFFSET, UNSTABLE]
    assert deleted(client, gone) == 0
    assert (listed(client, gone), described(client, gone)) == (None, GROUP_ID_NOT_FOUND)
    transaction.end(commit=True)
    wait_for(lambda: offsets(client, kept, topic) == [NO_OFFSET, OFFSET], "the marker")
    assert (listed(client, kept), listed(client, gone)) == (EMPTY, None)
    assert offsets(client, gone, topic) == [NO_OFFSET, NO_OFFSET]
    assert deleted(client, gone) == offset_deleted(client, unknown, topic, 0) == GROUP_ID_NOT_FOUND

    transaction = Transaction(client, topic_name("y"), topic)
    transaction.commit(aborted, 0)
    transaction.end(commit=False)
    wait_for(lambda: offsets(client, aborted, topic) == [NO_OFFSET, NO_OFFSET], "the marker")
    assert listed(client, aborted) == EMPTY  # until groups without offsets are looked for
    assert deleted(client, aborted) == 0


def test_a_broker_that_starts_again_has_the_group_of_an_open_transaction(start_broker, topic_name):
    server = start_broker()
    topic, group = topic_name(), topic_name("group")
    with closing(RawClient(server.bootstrap)) as client:
        client.create_topic(topic, 2)
        transaction = Transaction(client, topic_name("x"), topic)
        transaction.commit(group, 0)
    server.stop()
    server.restart()
    with closing(RawClient(server.bootstrap)) as client:
        transaction.client = client
        client.find(group)
        wait_for(lambda: listed(client, group) == EMPTY, "the coordinator of the group")
        assert offset_deleted(client, group, topic, 0) == 0
        transaction.end(commit=True)
        assert offsets(client, group, topic) == [NO_OFFSET, NO_OFFSET]
