"""Fetch: of a consumer with records, of one that waits for them, and of a follower."""

from __future__ import annotations

from barnabas.wire.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
)
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.metadata import DescribeClusterRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.costs.client import Client, check
from tests.costs.kind import Kind, Step, Steps, one_client
from tests.costs.kinds.batches import batch
from tests.costs.kinds.fetching import FULL_BYTES, VERSION, fetch_request
from tests.costs.kinds.produce_kinds import VERSION as PRODUCE_VERSION
from tests.costs.kinds.produce_kinds import produce_request, produced
from tests.costs.world import PLAIN, REPLICATED, CountedWorld

BATCH_RECORDS = 150
BATCHES = 20
WAIT_MS = 500
VAIN_MS = 1
"""How long a fetch waits in vain: so short that no periodic job is due while some of them are counted."""
FOLLOWER = 2
FOLLOWER_DIRECTORY = bytes(range(16))


def _unchanged(session: tuple[int, int]) -> FetchRequest:
    """What has changed in a session: nothing."""
    return FetchRequest(
        max_wait_ms=VAIN_MS, min_bytes=1, max_bytes=50 << 20, session_id=session[0], session_epoch=session[1]
    )


def _fetched(response: FetchResponse) -> FetchResponsePartitionData:
    """The answer for the only partition, with records."""
    check(response.error_code, "Fetch")
    (partition,) = response.responses[0].partitions
    check(partition.error_code, "Fetch")
    if not partition.records:
        raise RuntimeError("Fetch has brought no records")
    return partition


def _fill(client: Client, topic: str, batches: int = BATCHES) -> None:
    records = batch(BATCH_RECORDS)
    for _ in range(batches):
        produced(client.ask(produce_request(topic, records), PRODUCE_VERSION))


def _full(world: CountedWorld) -> Steps:
    """In a session; each request asks for other records than the one before, as a consumer does."""
    client = world.client()
    topic_id = client.create_topic("fetch-full")
    _fill(client, "fetch-full")
    first = client.ask(fetch_request(topic_id, 0, session=(0, 0), wait_ms=WAIT_MS), VERSION)
    _fetched(first)
    epoch = 1
    while True:
        request = fetch_request(topic_id, epoch % 3 * BATCH_RECORDS, session=(first.session_id, epoch), wait_ms=WAIT_MS)
        (response,) = yield one_client(client, request, VERSION)
        size = len(_fetched(response).records or b"")
        if size < 0.9 * FULL_BYTES:
            raise RuntimeError(f"Fetch has brought {size} bytes")
        epoch += 1


def _small(world: CountedWorld) -> Steps:
    """The last batch, with one record: what a consumer gets that keeps up."""
    client = world.client()
    topic_id = client.create_topic("fetch-small")
    records = batch(1)
    for _ in range(4):
        produced(client.ask(produce_request("fetch-small", records), PRODUCE_VERSION))
    first = client.ask(fetch_request(topic_id, 3, session=(0, 0), wait_ms=WAIT_MS), VERSION)
    _fetched(first)
    epoch = 1
    while True:
        request = fetch_request(topic_id, 2 + epoch % 2, session=(first.session_id, epoch), wait_ms=WAIT_MS)
        (response,) = yield one_client(client, request, VERSION)
        _fetched(response)
        epoch += 1


def _waiting(world: CountedWorld) -> Steps:
    """A Fetch at the end of the log, which waits, and the Produce of a record that completes it: both count."""
    client, producer = world.client(), world.client()
    topic_id = client.create_topic("fetch-waiting")
    records = batch(1)
    offset = 0
    while True:
        yield Step([(client, fetch_request(topic_id, offset, wait_ms=WAIT_MS), VERSION)], reads=[])
        answers = yield Step(
            [(producer, produce_request("fetch-waiting", records), PRODUCE_VERSION)], reads=[producer, client]
        )
        produced(answers[0])
        _fetched(answers[1])
        offset += 1


def _expired(world: CountedWorld) -> Steps:
    """A Fetch that waits in vain: the request, the timer and the empty response."""
    client = world.client()
    topic_id = client.create_topic("fetch-in-vain")
    first = client.ask(fetch_request(topic_id, 0, session=(0, 0), wait_ms=0), VERSION)
    check(first.error_code, "Fetch")
    epoch = 1
    yield Step([], passes_deadlines_s=0.2, is_counted=False)
    while True:
        yield Step([(client, _unchanged((first.session_id, epoch)), VERSION)], reads=[])
        (response,) = yield Step([], reads=[client], advances_s=1.5 * VAIN_MS / 1000)
        check(response.error_code, "Fetch")
        epoch += 1


def _register_follower(world: CountedWorld) -> int:
    """Register another broker, which is this process, at the controller; returns its epoch."""
    from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES

    client, controller = world.client(), world.client("CONTROLLER")
    cluster_id = client.ask(DescribeClusterRequest(), 1).cluster_id
    response = controller.ask(
        BrokerRegistrationRequest(
            broker_id=FOLLOWER,
            cluster_id=cluster_id,
            incarnation_id=bytes([FOLLOWER]) * 16,
            listeners=[BrokerRegistrationRequestListener(name="PLAINTEXT", host="127.0.0.1", port=9)],
            features=[
                BrokerRegistrationRequestFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[FOLLOWER_DIRECTORY],
        ),
        4,
    )
    check(response.error_code, "BrokerRegistration")
    beat = BrokerHeartbeatRequest(
        broker_id=FOLLOWER, broker_epoch=response.broker_epoch, current_metadata_offset=1 << 40
    )
    alive = controller.ask(beat, 1)
    check(alive.error_code, "BrokerHeartbeat")
    if alive.is_fenced:
        raise RuntimeError("the follower is fenced")
    return int(response.broker_epoch)


class _Follower:
    """A follower of partition 0 of a topic, which keeps up, and a producer."""

    def __init__(self, world: CountedWorld, topic: str) -> None:
        self.replica = (FOLLOWER, _register_follower(world))
        self.producer, self.client = world.client(), world.client()
        self._topic_id = self.producer.create_topic(topic, assignment=[[1, FOLLOWER]])
        self._topic = topic
        first = self.client.ask(self._request((0, 0), 0, wait_ms=0), VERSION)
        check(first.error_code, "Fetch")
        self._session_id, self._epoch, self.offset = first.session_id, 0, 0

    def _request(self, session: tuple[int, int], offset: int, wait_ms: int) -> FetchRequest:
        request = fetch_request(self._topic_id, offset, session=session, replica=self.replica, wait_ms=wait_ms)
        ((partition,),) = [topic.partitions for topic in request.topics]
        partition.current_leader_epoch = 0
        partition.last_fetched_epoch = 0 if offset else -1
        return request

    def fetch(self) -> tuple[Client, FetchRequest, int]:
        """The next fetch: everything below its offset is on the follower."""
        self._epoch += 1
        return self.client, self._request((self._session_id, self._epoch), self.offset, WAIT_MS), VERSION

    def produce(self, records: bytes, acks: int) -> tuple[Client, ProduceRequest, int]:
        """A produce of one record."""
        self.offset += 1
        return self.producer, produce_request(self._topic, records, acks=acks), PRODUCE_VERSION


def _follower(world: CountedWorld) -> Steps:
    """A fetch of a follower that is answered at once, and acknowledges the record before."""
    follower = _Follower(world, "fetch-follower")
    records = batch(1)
    while True:
        fetch = follower.fetch()
        (response,) = yield Step([follower.produce(records, acks=1)], is_counted=False)
        produced(response)
        (response,) = yield Step([fetch])
        _fetched(response)


def _replicated(world: CountedWorld) -> Steps:
    """A Produce with acks=all, whose record a waiting fetch brings, and the next fetch, which acknowledges it."""
    follower = _Follower(world, "fetch-replicated")
    records = batch(1)
    yield Step([follower.fetch()], reads=[], is_counted=False)
    while True:
        (response,) = yield Step([follower.produce(records, acks=-1)], reads=[follower.client])
        _fetched(response)
        (response,) = yield Step([follower.fetch()], reads=[follower.producer])
        produced(response)


FETCH = (
    Kind("Fetch 1 record", PLAIN, _small),
    Kind("Fetch 256 KB", PLAIN, _full),
    Kind("Fetch that waits, and Produce", PLAIN, _waiting, counted_steps=2),
    Kind("Fetch that waits in vain", PLAIN, _expired, counted_steps=2),
    Kind("Fetch of a follower", REPLICATED, _follower),
    Kind("Produce and Fetch of a follower, acks=all", REPLICATED, _replicated, counted_steps=2),
)
