"""The limits of the metadata from the broker's configuration (`coord.cluster.changes.metadata_limits`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.keys import own
from barnabas.coord.cluster.changes.metadata_limits import MetadataLimits

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig


def metadata_limits(config: ServerConfig) -> MetadataLimits:
    """The largest number of each kind of object."""
    return MetadataLimits(
        partitions=config[own.PARTITIONS_MAX],
        acls=config[own.ACLS_MAX],
        scram_credentials=config[own.SCRAM_CREDENTIALS_MAX],
        delegation_tokens=config[own.DELEGATION_TOKENS_MAX],
        delegation_tokens_of_owner=config[own.DELEGATION_TOKENS_OF_OWNER_MAX],
        client_quotas=config[own.CLIENT_QUOTAS_MAX],
        config_resources=config[own.CONFIG_RESOURCES_MAX],
    )
