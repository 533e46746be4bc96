"""The metadata of a broker whose controller is another process (`Metadata`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.event_loop.waiting import Future, until
from barnabas.broker.metadata.topic_creation import TopicCreation
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.metadata.controller_channel import ControllerChannel
    from barnabas.broker.metadata.loader import MetadataLoader
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.local_controller import LocalController
    from barnabas.wire.messages.configs import (
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )
    from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsResponse


EFFECT_S: Final = 1.0
"""How long the response to a forwarded change waits at most until this broker's image has the change."""


class RemoteMetadata:
    """The image that the observer keeps, and requests to the controller."""

    supported_features: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        channel: ControllerChannel,
        loader: MetadataLoader,
        *,
        broker_epoch: Callable[[], int],
        new_id: Callable[[], bytes],
    ) -> None:
        self._config = config
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._new_id = new_id
        self._describing: LocalController | None = None
        self._loop = loop
        self._awaited: dict[Future[None], Callable[[], bool]] = {}
        self.loader = loader
        self.on_change = loader.on_change
        self.on_config_change = loader.on_config_change
        self.on_group_config_change = loader.on_group_config_change
        self.has_topic = loader.has_topic
        self.topics = TopicCreation(loop, config, channel, loader)
        self.auto_create = self.topics.auto_create
        self.auto_create_dead_letter_queue = self.topics.auto_create_dead_letter_queue

    @property
    def image(self) -> ClusterImage:
        """The cluster's current metadata."""
        return self.loader.image

    def create_topics(
        self,
        topics: Callable[[], list[CreatableTopic]],
        then: Callable[[CreateTopicsResponse | KafkaError], None],
    ) -> None:
        """Create topics that the broker itself needs."""
        self.topics.create(topics(), then)

    def allocate_producer_ids(self, then: Callable[[tuple[int, int] | KafkaError], None]) -> None:
        """Allocate a block of producer ids that were never used; `then` gets the first id and the number of ids."""

        def finish(response: AllocateProducerIdsResponse | KafkaError) -> None:
            if isinstance(response, KafkaError):
                then(response)
            elif response.error_code:
                then(KafkaError(ErrorCode(response.error_code), "The controller allocates no producer ids."))
            else:
                then((response.producer_id_start, response.producer_id_len))

        request = AllocateProducerIdsRequest(broker_id=self._config.node_id, broker_epoch=self._broker_epoch())
        self._channel.send(request, finish)

    async def wait_for(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds`, a condition on this broker's image, is true, or `EFFECT_S` have passed.

        So a client that changes the metadata here finds the change here, as on a single node. Kafka does not wait.
        """
        if holds():
            return
        future: Future[None] = Future()
        self._awaited[future] = holds
        try:
            await until(self._loop.timers, self._loop.now() + EFFECT_S, future, None)
        finally:
            del self._awaited[future]

    def applied(self) -> None:
        """The image has changed, and the broker has applied it."""
        self.topics.applied()
        for future, holds in list(self._awaited.items()):
            if holds():
                call_guarded("Answering a change of the metadata", future.complete)

    # Descriptions of the image

    def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """DescribeConfigs (32) of all resource types but broker loggers."""
        return self._local.describe_configs(request)

    def list_config_resources(self, request: ListConfigResourcesRequest, version: int) -> ListConfigResourcesResponse:
        """ListConfigResources (74)."""
        return self._local.list_config_resources(request, version)

    @property
    def _local(self) -> LocalController:
        """Describes the image as it is now; a snapshot replaces the image."""
        describing = self._describing
        if describing is None or describing.image is not self.image:
            from barnabas.broker.config.config_schema import config_schema
            from barnabas.coord.cluster.local_controller import LocalController

            config = self._config
            schema = config_schema([endpoint.name for endpoint in config.listeners])
            describing = self._describing = LocalController(self.image, schema, config, config.node_id, self._new_id)
        return describing
