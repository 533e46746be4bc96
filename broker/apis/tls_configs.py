"""IncrementalAlterConfigs of this broker's certificates: what could not be used is refused before it is stored.

Kafka's broker checks its own configs before it passes a change on (KIP-226); the stores are read in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coord.cluster.config_changes import Operation
from barnabas.coord.cluster.resources import BROKER
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import IncrementalAlterConfigsResponseAlterConfigsResourceResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import RequestContext
    from barnabas.broker.steps import Steps
    from barnabas.wire.messages.configs import IncrementalAlterConfigsRequestAlterConfigsResource

    Resources = Sequence[IncrementalAlterConfigsRequestAlterConfigsResource]

_OF_TLS: Final = ".ssl."


def concerns_certificates(ctx: RequestContext, resources: Resources) -> bool:
    """Whether one of the changes may need the check."""
    return ctx.broker.tls is not None and any(_is_concerned(ctx, one) for one in resources)


def _is_concerned(ctx: RequestContext, resource: IncrementalAlterConfigsRequestAlterConfigsResource) -> bool:
    is_own = resource.resource_type == BROKER and resource.resource_name == str(ctx.broker.node_id)
    return is_own and any(_OF_TLS in f".{config.name}" for config in resource.configs)


def refuse_certificates(
    ctx: RequestContext, resources: Resources
) -> Steps[list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse]]:
    """The responses for those of the resources whose certificates could not be used."""
    refused: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = []
    tls = ctx.broker.tls
    for resource in resources:
        if tls is None or not _is_concerned(ctx, resource):
            continue
        try:
            wanted = tls.settings_with(_proposed(ctx, resource))
            yield lambda wanted=wanted: tls.check(wanted)  # type: ignore[misc]
        except ConfigError as error:
            refused.append(
                IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message=str(error),
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
    return refused


def _proposed(ctx: RequestContext, resource: IncrementalAlterConfigsRequestAlterConfigsResource) -> ServerConfig:
    """This broker's configuration with the change; what is appended to lists is checked when it is effective."""
    image = ctx.broker.image
    own = dict(image.config(BROKER, resource.resource_name))
    for change in resource.configs:
        if change.config_operation == Operation.DELETE:
            own.pop(change.name, None)
        elif change.config_operation == Operation.SET and change.value is not None:
            own[change.name] = change.value
    return ctx.broker.config.with_dynamic(own, image.config(BROKER, ""))


def without(
    resources: Resources, refused: Sequence[IncrementalAlterConfigsResponseAlterConfigsResourceResponse]
) -> list[IncrementalAlterConfigsRequestAlterConfigsResource]:
    """The resources that are not refused."""
    names = {(one.resource_type, one.resource_name) for one in refused}
    return [one for one in resources if (one.resource_type, one.resource_name) not in names]
