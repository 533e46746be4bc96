"""The content of this broker's registration: listeners, features, directories, rack.

KIP-584, KIP-631, KIP-858.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import BROKER_RACK
from barnabas.broker.config.listeners import SECURITY_PROTOCOLS
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES
from barnabas.wire.messages.cluster import (
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
)
from barnabas.wire.types import uuid_from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.wire.types import Uuid

_WILDCARDS: Final = {"", "0.0.0.0", "::"}


def registration_request(
    config: ServerConfig,
    *,
    cluster_id: str,
    incarnation_id: Uuid,
    listeners: Sequence[Endpoint],
    log_dirs: LogDirs,
    previous_epoch: int,
) -> BrokerRegistrationRequest:
    """The registration; `listeners` are the bound ones; advertised addresses replace theirs where configured.

    A listener on all interfaces is advertised by the name of this machine, as in Kafka.
    """
    advertised = config.advertised_listeners
    endpoints = [advertised.get(listener.name, listener) for listener in listeners]
    return BrokerRegistrationRequest(
        broker_id=config.node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            BrokerRegistrationRequestListener(
                name=endpoint.name,
                host=os.uname().nodename if endpoint.host in _WILDCARDS else endpoint.host,
                port=endpoint.port,
                security_protocol=SECURITY_PROTOCOLS.index(config.protocol_of(endpoint.name)),
            )
            for endpoint in endpoints
        ],
        features=[
            BrokerRegistrationRequestFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=config[BROKER_RACK],
        log_dirs=sorted(uuid_from_text(log_dir.directory_id) for log_dir in log_dirs.working),
        previous_broker_epoch=previous_epoch,
    )
