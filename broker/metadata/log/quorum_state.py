"""The quorum of a single node: its epochs in the file `quorum-state`, and the check that there are no other nodes.

Source: KIP-595, Kafka's `FileQuorumStateStore`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.controller import CONTROLLER_QUORUM_VOTERS
from barnabas.coord.cluster.image import METADATA_VERSION_FEATURE, ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES
from barnabas.coord.cluster.quorum import Election, Quorum, standalone
from barnabas.storage.directories.checkpoints import replace_file
from barnabas.wire.messages.records.raft_records import VotersRecordEndpoint
from barnabas.wire.types import uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.storage.log import Log

logger = logging.getLogger("kafka.server.MetadataLog")

QUORUM_STATE: Final = "quorum-state"
"""The file beside the metadata log that has the last epoch that was begun."""


def read_election(log: Log) -> Election:
    """The content of `quorum-state`, whose epoch may be newer than the log's; an empty election if it is unreadable."""
    path = f"{log.directory}/{QUORUM_STATE}"
    try:
        return Election.from_file(log.files.read_file(path))
    except FileNotFoundError:
        return Election()
    except ValueError as error:  # as in Kafka: the epochs of the log are enough for a quorum of one
        logger.warning("Cannot read %s: %s", path, error)
        return Election()


def write_epoch(log: Log, quorum: Quorum, node_id: int, epoch: int) -> None:
    """Write to `quorum-state` that this node leads `epoch`."""
    replace_file(log.files, f"{log.directory}/{QUORUM_STATE}", quorum.state_file(node_id, epoch))


def new_quorum(config: ServerConfig, directory_id: str, bound: VotersRecordEndpoint | None = None) -> Quorum:
    """The quorum that Kafka has with the same configuration: the configured voters, else this node's voter record.

    `bound` is the address of the controller listener, if it is open.
    """
    endpoint = bound or config.controller_listener
    if endpoint is None or config[CONTROLLER_QUORUM_VOTERS]:
        return Quorum()
    address = VotersRecordEndpoint(name=endpoint.name, host=endpoint.host or "localhost", port=endpoint.port)
    return standalone(config.node_id, uuid_from_text(directory_id), address)


def check_servable(
    image: ClusterImage, node_id: int, configured_voters: frozenset[int], *, is_of_cluster: bool = False
) -> None:
    """UnknownMetadataError for metadata that other nodes have to serve, or of a version that is not supported.

    Other nodes have to serve a quorum with other voters and, without `is_of_cluster`, a cluster with other brokers.
    """
    voters = (configured_voters | image.quorum.voter_ids) - {node_id}
    if voters and is_of_cluster:
        nodes = ",".join(map(str, sorted(voters)))
        raise UnknownMetadataError(
            f"The metadata is of a quorum with other voters ({nodes}) than {node_id}: the controller of Barnabas is a "
            "quorum of one"
        )
    others = set() if is_of_cluster else (voters | image.brokers.keys()) - {node_id}
    if others:
        nodes = ",".join(map(str, sorted(others)))
        raise UnknownMetadataError(
            f"The metadata is of a cluster with other nodes ({nodes}) beside {node_id}: "
            "it needs process.roles with a controller listener"
        )
    lowest, highest = SUPPORTED_FEATURES[METADATA_VERSION_FEATURE]
    level = image.features.get(METADATA_VERSION_FEATURE, highest)
    if not lowest <= level <= highest:
        raise UnknownMetadataError(
            f"The metadata has {METADATA_VERSION_FEATURE} {level}, but this broker supports {lowest} to {highest}"
        )
