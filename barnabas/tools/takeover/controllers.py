"""Checks the controllers in the configuration: one must answer, and this broker must support its finalized features."""

from __future__ import annotations

from time import monotonic
from typing import Final

import barnabas
from barnabas.broker.config.keys.controller import CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, CONTROLLER_QUORUM_VOTERS
from barnabas.broker.config.roles import parse_address, parse_voters
from barnabas.broker.config.server_config import ServerConfig
from barnabas.client.connection import SOFTWARE_NAME, NodeConnection
from barnabas.client.errors import ClientError
from barnabas.tools.takeover.features import check_features
from barnabas.tools.takeover.verdict import Verdict
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

TIMEOUT_S: Final = 5.0
"""How long one controller may take, seconds."""


def check_controllers(config: ServerConfig, verdict: Verdict) -> None:
    """Ask the controllers for the features that the cluster has finalized, the first that answers."""
    listener = config.controllers_listener
    if listener is not None and config.protocol_of(listener) != "PLAINTEXT":
        verdict.note(f"The controllers are not asked: their listener {listener} is {config.protocol_of(listener)}")
        return
    failures = []
    for host, port in addresses(config):
        try:
            levels = finalized(host, port)
        except (ClientError, KafkaError) as error:
            failures.append(str(error))
            continue
        check_features(levels, f"The controller at {host}:{port}", verdict)
        for text in failures:
            verdict.note(f"Another controller is asked: {text}")
        return
    verdict.refuse(f"No controller answers: {'; '.join(failures)}")


def addresses(config: ServerConfig) -> list[tuple[str, int]]:
    """Where the controllers are, each address once."""
    servers = [parse_address(text, text) for text in config[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]]
    voters = [(voter.host, voter.port) for voter in parse_voters(config[CONTROLLER_QUORUM_VOTERS])]
    return list(dict.fromkeys([*servers, *voters]))


def finalized(host: str, port: int) -> dict[str, int]:
    """The finalized features of a node by name. Raises ClientError, KafkaError."""
    version = barnabas.__version__
    connection = NodeConnection(host, port, "barnabas-serve-check", version)
    deadline = monotonic() + TIMEOUT_S
    try:
        connection.open(deadline)
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=version)
        response = connection.call(request, ApiVersionsResponse, deadline)
    finally:
        connection.close()
    return {feature.name: feature.max_version_level for feature in response.finalized_features}
