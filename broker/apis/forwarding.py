"""Requests of clients that only the controller can answer: a broker sends them on in an Envelope (KIP-590).

The envelope has the client's request as it was sent, in the client's version, with the client's principal and address.
The response is relayed; after a change of topics only once this broker has the change, so that the client finds it
here. The channel looks for the active controller until the time of the request is up. The controller checks the
principal of the client, and that the sender is a broker. Changes of log levels are made by this broker.
"""

from __future__ import annotations

import logging
from copy import copy
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.apis.admin.broker_loggers import alter_loggers
from barnabas.broker.apis.admin.configs import concerns_certificates, refuse_certificates, without
from barnabas.broker.apis.registry import BROKER, FORWARDED, FORWARDING, ROUTES, api, served_versions
from barnabas.broker.event_loop.waiting import Future, run_steps
from barnabas.broker.metadata.remote_metadata import RemoteMetadata
from barnabas.coord.cluster.changes.acl_changes import acl_of
from barnabas.coord.cluster.resources import BROKER_LOGGER
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.frame import SIZE, encode_request, parse_response_header
from barnabas.wire.messages.cluster import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.configs import (
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from barnabas.wire.messages.security.acls import CreateAclsRequest, CreateAclsResponse
from barnabas.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
)
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.topic_image import TopicImage
    from barnabas.wire.schema import Message

logger = logging.getLogger("kafka.server.ForwardingManager")

MIN_TIMEOUT_S: Final = 1.0


async def forward(ctx: RequestContext, request: Message) -> Message:
    """Send a client's request to the controller; return the response once this broker has the effect."""
    response = await send_to_controller(ctx, request)
    has_effect = _effect(ctx, request, response)
    if has_effect is not None and isinstance(ctx.broker.metadata, RemoteMetadata):
        await ctx.broker.metadata.wait_for(has_effect)
    return response


def _effect(ctx: RequestContext, request: Message, response: Message) -> Callable[[], bool] | None:
    """A function that says whether this broker has the change; None if the response need not wait for that."""
    if getattr(request, "validate_only", False):
        return None
    metadata = ctx.broker.metadata
    if isinstance(response, CreateTopicsResponse):
        created = [result.name for result in response.topics if not result.error_code]
        return lambda: all(map(metadata.has_topic, created))
    if isinstance(response, DeleteTopicsResponse):
        deleted = [result.name for result in response.responses if not result.error_code and result.name]
        return lambda: not any(name in metadata.image.topics for name in deleted)
    if isinstance(request, CreateAclsRequest) and isinstance(response, CreateAclsResponse):
        return _acls_are_here(ctx, request, response)
    if isinstance(request, CreatePartitionsRequest) and isinstance(response, CreatePartitionsResponse):
        counts = {topic.name: topic.count for topic in request.topics}
        extended = [result.name for result in response.results if not result.error_code]
        return lambda: all(_has_partitions(metadata.image.topic(name), counts.get(name, 0)) for name in extended)
    if request.api_key == ApiKey.ALTER_CLIENT_QUOTAS:
        from barnabas.coord.cluster.changes.quota_changes import has_quotas

        return lambda: has_quotas(metadata.image, request, response)  # type: ignore[arg-type]
    return None


def _acls_are_here(
    ctx: RequestContext, request: CreateAclsRequest, response: CreateAclsResponse
) -> Callable[[], bool] | None:
    """Whether this broker's authorizer has the ACLs that were created."""
    authorizer = ctx.broker.authorizer
    if authorizer is None:
        return None
    index = authorizer.rules.index
    results = zip(request.creations, response.results, strict=False)
    created = [acl_of(creation) for creation, result in results if not result.error_code]
    return lambda: all(acl in index for acl in created)


def _has_partitions(topic: TopicImage | None, count: int) -> bool:
    return topic is None or len(topic.partitions) >= count


async def send_to_controller(ctx: RequestContext, request: Message) -> Message:
    """The controller's response to a request that is sent to it in an envelope.

    KafkaError if the controller cannot be reached in time, or for an error between broker and controller, which the
    client cannot correct.
    """
    version = ctx.api_version
    frame = b"".join(map(chunk_bytes, encode_request(request, version, ctx.correlation_id, ctx.client_id)))
    envelope = EnvelopeRequest(
        request_data=frame[SIZE.size :],
        request_principal=ctx.principal.to_bytes(),
        client_host_address=ip_address(ctx.peer_host).packed,
    )
    timeout_ms = getattr(request, "timeout_ms", None)
    timeout_s = None if timeout_ms is None else max(timeout_ms / 1000, MIN_TIMEOUT_S)
    future: Future[EnvelopeResponse] = Future()
    ctx.broker.controller_channel.send(envelope, future.complete, timeout_s=timeout_s)
    return _unpacked(request, version, await future)


def _unpacked(request: Message, version: int, envelope: EnvelopeResponse) -> Message:
    """The response in an envelope."""
    if envelope.error_code == ErrorCode.UNSUPPORTED_VERSION:
        text = "The controller does not support this version of the request."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
    if envelope.error_code or envelope.response_data is None:
        logger.error("The controller answers an envelope with %s", ErrorCode(envelope.error_code).name)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller did not take the forwarded request.")
    data = memoryview(envelope.response_data)
    response: Message
    try:
        _, position = parse_response_header(data, request.api_key, version)
        response, _ = message_for(request.api_key)[1].codec(version).parse(data, position)
    except ProtocolError as error:
        logger.error("The controller's answer to a forwarded %s is invalid: %s", type(request).__name__, error)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller's answer is invalid.") from None
    return response


async def _alter_configs(ctx: RequestContext, request: Any) -> Message:
    """AlterConfigs and IncrementalAlterConfigs: at the controller, if this broker's certificates can be used.

    The incremental one can change the log levels of this broker too.
    """
    is_incremental = request.api_key == ApiKey.INCREMENTAL_ALTER_CONFIGS
    results: list[Any] = []
    others: list[Any] = []
    for resource in request.resources:
        if is_incremental and resource.resource_type == BROKER_LOGGER:
            results.append(alter_loggers(ctx, resource, validate_only=request.validate_only))
        else:
            others.append(resource)
    if concerns_certificates(ctx, others):
        result_class: Any = (
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse
            if is_incremental
            else AlterConfigsResponseAlterConfigsResourceResponse
        )
        refused = await run_steps(ctx.broker.runner, refuse_certificates(ctx, others, result_class))
        results += refused
        others = without(others, refused)
    if results and not others:
        response_class = IncrementalAlterConfigsResponse if is_incremental else AlterConfigsResponse
        return response_class(responses=results)
    rest = copy(request)
    rest.resources = others
    response: Any = await send_to_controller(ctx, rest)
    response.responses += results
    return response  # type: ignore[no-any-return]


async def _change_token(ctx: RequestContext, request: Message) -> Message:
    """Forward a change of a delegation token if the client may make it: only this broker can check that."""
    from barnabas.broker.apis.security.delegation_tokens import refused

    return refused(ctx, request) or await forward(ctx, request)


def _error(api_key: int, request: Message, error: KafkaError) -> Message:
    """The response for an error of the whole request, as a broker with a controller has it."""
    response = ROUTES[BROKER].find(api_key, served_versions(ApiKey(api_key))[1]).error_response(request, error)
    assert response is not None
    return response


_OTHERS: Final[dict[ApiKey, Any]] = {
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _alter_configs,
    ApiKey.CREATE_DELEGATION_TOKEN: _change_token,
    ApiKey.RENEW_DELEGATION_TOKEN: _change_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _change_token,
}
for _key in FORWARDED:
    _request_class = message_for(_key)[0]
    _handler = _OTHERS.get(_key, forward)
    api(_request_class, listener=FORWARDING, on_error=partial(_error, _key), send_before_close=True)(_handler)
