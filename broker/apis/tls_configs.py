"""Changes of this broker's certificates: what could not be used is refused before it is stored.

Kafka's broker checks its own configs before it passes a change on (KIP-226), in AlterConfigs and
IncrementalAlterConfigs alike; the stores are read in a thread. Who may not change the configs learns nothing of files.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from barnabas.broker.apis.config_access import config_error
from barnabas.coord.cluster.changes.config_changes import Operation
from barnabas.coord.cluster.resources import BROKER
from barnabas.coord.security.acls import Operation as AclOperation
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import RequestContext
    from barnabas.broker.steps import Steps

Change: TypeAlias = AlterConfigsRequestAlterConfigsResource | IncrementalAlterConfigsRequestAlterConfigsResource
C = TypeVar("C", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource)
R = TypeVar(
    "R",
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)

_OF_TLS: Final = ".ssl."


def concerns_certificates(ctx: RequestContext, changes: Sequence[C]) -> bool:
    """Whether one of the changes needs the check."""
    return ctx.broker.tls is not None and any(_is_concerned(ctx, one) for one in changes)


def _is_concerned(ctx: RequestContext, change: Change) -> bool:
    """A change of this broker's configs that sets a key of TLS, or removes one by leaving it out, by who may do so."""
    if change.resource_type != BROKER or change.resource_name != str(ctx.broker.node_id):
        return False
    names = [config.name for config in change.configs]
    if isinstance(change, AlterConfigsRequestAlterConfigsResource):
        names += ctx.broker.image.config(BROKER, change.resource_name)
    if not any(_OF_TLS in f".{name}" for name in names):
        return False
    return config_error(ctx, AclOperation.ALTER_CONFIGS, change) is None


def refuse_certificates(ctx: RequestContext, changes: Sequence[C], response: type[R]) -> Steps[list[R]]:
    """The responses for those of the changes whose certificates could not be used."""
    refused: list[R] = []
    tls = ctx.broker.tls
    for change in changes:
        if tls is None or not _is_concerned(ctx, change):
            continue
        try:
            wanted = tls.settings_with(_proposed(ctx, change))
            yield partial(tls.check, wanted)
        except ConfigError as error:
            refused.append(
                response(
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message=str(error),
                    resource_type=change.resource_type,
                    resource_name=change.resource_name,
                )
            )
    return refused


def _proposed(ctx: RequestContext, change: Change) -> ServerConfig:
    """This broker's configuration with the change; what is appended to lists is checked when it is effective."""
    image = ctx.broker.image
    own: dict[str, str]
    if isinstance(change, AlterConfigsRequestAlterConfigsResource):
        own = {config.name: config.value for config in change.configs if config.value is not None}
    else:
        own = dict(image.config(BROKER, change.resource_name))
        for config in change.configs:
            if config.config_operation == Operation.DELETE:
                own.pop(config.name, None)
            elif config.config_operation == Operation.SET and config.value is not None:
                own[config.name] = config.value
    return ctx.broker.config.with_dynamic(own, image.config(BROKER, ""))


def without(changes: Sequence[C], refused: Sequence[R]) -> list[C]:
    """The changes that are not refused."""
    names = {(one.resource_type, one.resource_name) for one in refused}
    return [one for one in changes if (one.resource_type, one.resource_name) not in names]
