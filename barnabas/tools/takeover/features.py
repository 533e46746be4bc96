"""Checks whether the metadata of the cluster, from the copy in a log directory, can be served completely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.config.keys.controller import CONTROLLER_QUORUM_VOTERS
from barnabas.broker.config.keys.general import AUTHORIZER_CLASS_NAME
from barnabas.broker.config.roles import parse_voters
from barnabas.broker.config.server_config import ServerConfig
from barnabas.broker.metadata.log.quorum_state import check_servable
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES
from barnabas.coord.cluster.resources import TOPIC
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage import layout
from barnabas.storage.files import ReadOnlyFiles
from barnabas.tools.dump.metadata_image import read_image
from barnabas.tools.takeover.verdict import Verdict
from barnabas.wire.errors import KafkaError, ProtocolError

_TIERED: Final = "remote.storage.enable"


def check_metadata(config: ServerConfig, verdict: Verdict) -> None:
    """Check the metadata log of the directory that has it; a node without one reads all from the controllers."""
    files = ReadOnlyFiles()
    for path in config.log_dirs:
        directory = f"{path}/{layout.partition_dir_name(CLUSTER_METADATA_TOPIC, 0)}"
        if not files.exists(directory):
            continue
        try:
            image = read_image(files, directory)
            if "controller" in config.roles:
                voters = frozenset(voter.id for voter in parse_voters(config[CONTROLLER_QUORUM_VOTERS]))
                check_servable(image, config.node_id, voters, is_of_cluster=not config.is_standalone)
        except (OSError, KafkaError, ProtocolError, UnknownMetadataError) as error:
            verdict.refuse(f"The copy of the metadata in {directory} cannot be served: {error}")
            return
        check_features(image.finalized_features, "The cluster", verdict)
        _check_topics(image, verdict)
        if image.acls and not config[AUTHORIZER_CLASS_NAME].strip():
            key = AUTHORIZER_CLASS_NAME.name
            verdict.note(f"The cluster has {len(image.acls)} ACLs, which are kept and not enforced without {key}")


def check_features(levels: Mapping[str, int], who: str, verdict: Verdict) -> None:
    """Every finalized level must be one that this broker supports, else it is not registered."""
    for name, level in sorted(levels.items()):
        if name not in SUPPORTED_FEATURES:
            verdict.refuse(f"{who} has the feature {name}, which this version of Barnabas does not know")
            continue
        low, high = SUPPORTED_FEATURES[name]
        if not low <= level <= high:
            verdict.refuse(f"{who} has {name} at level {level}; this version of Barnabas supports {low} to {high}")


def _check_topics(image: ClusterImage, verdict: Verdict) -> None:
    tiered = sorted(topic for topic in image.topics if image.config(TOPIC, topic).get(_TIERED) == "true")
    if tiered:
        verdict.refuse(f"Topics have segments in tiered storage ({_TIERED}), which cannot be read: {', '.join(tiered)}")
