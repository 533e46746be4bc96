"""The cluster's metadata as every broker has it, wherever its controller is: `broker.metadata`.

A single node's `Controller` changes the image itself; a broker without a controller in its process follows the
controllers' metadata log (`remote_metadata`). Handlers and coordinators use only this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.wire.errors import KafkaError
    from barnabas.wire.messages.configs import (
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )
    from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsResponse


class Metadata(Protocol):
    """The cluster's metadata, its changes, and the broker's own requests to the controller."""

    supported_features: Mapping[str, tuple[int, int]]
    """Feature levels this broker can work with, lowest and highest."""
    on_change: list[Callable[[ClusterDelta], Steps[None] | None]]
    """Called in order with every change of the image. A subscriber whose part is long returns it as steps."""
    on_config_change: list[Callable[[set[str]], Steps[None] | None]]
    """Called with the names of broker configs that have changed, after they are effective."""
    on_group_config_change: list[Callable[[ClusterDelta], None]]
    """Called when configs of groups or of the broker have changed, after they are effective."""

    @property
    def image(self) -> ClusterImage:
        """The cluster's current metadata."""

    def has_topic(self, name: str) -> bool:
        """Whether a topic exists and its creation is in effect: this broker's partitions of it are open."""

    def auto_create(self, names: Iterable[str], then: Callable[[Mapping[str, KafkaError]], None]) -> None:
        """Create the topics that are missing; `then` is called when all are in effect, with the errors by name.

        If all exist, it is called before this returns.
        """

    def auto_create_dead_letter_queue(self, name: str, then: Callable[[KafkaError | None], None]) -> None:
        """Create a share group's dead-letter queue (KIP-1191) unless it exists; then call `then`, with any error."""

    def create_topics(
        self,
        topics: Callable[[], list[CreatableTopic]],
        then: Callable[[CreateTopicsResponse | KafkaError], None],
    ) -> None:
        """Create topics that the broker itself needs; `topics` is called when all earlier changes are in effect."""

    def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """DescribeConfigs (32) of all resource types but broker loggers."""

    def list_config_resources(self, request: ListConfigResourcesRequest, version: int) -> ListConfigResourcesResponse:
        """ListConfigResources (74)."""

    def allocate_producer_ids(self, then: Callable[[tuple[int, int] | KafkaError], None]) -> None:
        """Allocate a block of producer ids that were never used; `then` gets the first id and the number of ids."""
