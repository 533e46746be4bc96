"""A broker of one topic and one partition that injects faults, on a real socket.

It checks sequence numbers as a broker does (I1, I2) and applies one fault to each Produce request:

    ok               append and answer
    refuse           answer NOT_LEADER_OR_FOLLOWER, append nothing
    lose-request     close the connection, append nothing
    lose-answer      append, then close the connection
    fail             answer MESSAGE_TOO_LARGE
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Iterable

from barnabas.wire.batches.records import BatchView, increment_sequence, iter_records
from barnabas.wire.clients.connection import Connection, RequestReceived
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.schema import Message

TOPIC_ID = bytes(range(16))
SPOKEN = (ApiVersionsRequest, MetadataRequest, InitProducerIdRequest, ProduceRequest)


class ConnectionDropped(Exception):  # noqa: N818 (what happened, not an error)
    """The connection is closed without a response."""


class ScriptedBroker:
    """Listens on a free port; `log` holds the values appended, in order."""

    def __init__(self, faults: Iterable[str] = (), partitions: int = 1) -> None:
        self.faults = deque(faults)
        self.partitions = partitions
        self.log: list[bytes] = []
        self.produced = 0
        self._next_sequence = 0
        self._appended: set[int] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> ScriptedBroker:
        return self

    def __exit__(self, *exception: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        """Accept one connection at a time, since a client opens one connection per node."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        protocol = Connection.server()
        try:
            while data := connection.recv(65536):
                protocol.receive_data(data)
                while isinstance(event := protocol.next_event(), RequestReceived):
                    response = self._answer(event.request)
                    connection.sendall(b"".join(bytes(chunk) for chunk in protocol.send_response(response, event)))
        except (ConnectionDropped, ProtocolError, OSError):
            return

    def _answer(self, request: Message) -> Message:
        if isinstance(request, ApiVersionsRequest):
            keys = [
                ApiVersion(api_key=kind.api_key, min_version=kind.min_version, max_version=kind.max_version)
                for kind in SPOKEN
            ]
            return ApiVersionsResponse(api_keys=keys)
        if isinstance(request, MetadataRequest):
            return self._metadata(request)
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=1000, producer_epoch=0)
        assert isinstance(request, ProduceRequest)
        return self._produce(request)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(
                partition_index=index, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
            )
            for index in range(self.partitions)
        ]
        topics = [
            MetadataResponseTopic(name=topic.name, topic_id=TOPIC_ID, partitions=partitions)
            for topic in request.topics or ()
        ]
        node = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        return MetadataResponse(brokers=[node], controller_id=1, cluster_id="scripted", topics=topics)

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        self.produced += 1
        fault = self.faults.popleft() if self.faults else "ok"
        if fault == "lose-request":
            raise ConnectionDropped
        error = {"refuse": ErrorCode.NOT_LEADER_OR_FOLLOWER, "fail": ErrorCode.MESSAGE_TOO_LARGE}.get(fault)
        answers = []
        for data in request.topic_data[0].partition_data:
            assert isinstance(data.records, memoryview)
            code = self._append(BatchView(data.records)) if error is None else error
            answers.append(PartitionProduceResponse(index=data.index, error_code=code))
        if fault == "lose-answer":
            raise ConnectionDropped
        topic = request.topic_data[0]
        responses = [TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)]
        return ProduceResponse(responses=responses)

    def _append(self, batch: BatchView) -> ErrorCode:
        assert batch.crc_is_valid()
        if batch.base_sequence >= 0:
            if batch.base_sequence in self._appended:
                return ErrorCode.NONE
            if batch.base_sequence != self._next_sequence:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            self._appended.add(batch.base_sequence)
            self._next_sequence = increment_sequence(batch.base_sequence, batch.record_count)
        self.log += [record.value or b"" for record in iter_records(batch)]
        return ErrorCode.NONE
