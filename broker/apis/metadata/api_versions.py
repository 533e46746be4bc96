"""ApiVersions (18): the APIs of the kind of listener with their versions, features (KIP-35, KIP-511, KIP-584).

A request with an unsupported version of ApiVersions is answered in version 0 with UNSUPPORTED_VERSION and the versions
of ApiVersions only.

The answer is the same for all clients until the metadata changes: it is encoded once for each version of the request,
and again when the offset of the metadata, which is the epoch of the finalized features, has moved. It has the APIs of
client telemetry only if the pushed metrics can be read, as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import BROKER_APIS, CONTROLLER, CONTROLLER_APIS, TELEMETRY_APIS, api, served_versions
from barnabas.broker.config.keys.own import METRICS_LISTENER
from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.metadata.metadata import Metadata

FIRST_VERSION_WITH_CLIENT_SOFTWARE = 3
FIRST_VERSION_WITH_NODE = 5
_NO_NODE = -1
FIRST_PRODUCE_VERSION_SHOWN = 0
"""Produce is served from version 3, but reported from 0 as in Kafka 4, for older librdkafka (KAFKA-18659)."""
_FIRST_VERSION, _LAST_VERSION = served_versions(ApiKey.API_VERSIONS)
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(ApiVersionsRequest)
def api_versions(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse | EncodedResponse:
    """Return every API with its versions, and the features."""
    refusal = refused(ctx, request)
    if refusal is not None:
        return refusal
    if ctx.usage is not None:  # the throttle time is encoded after the APIs: the answer cannot be shared
        return whole_answer(ctx.broker.metadata, _shown(ctx))
    offset, encoded = ctx.broker.encoded_api_versions.get(ctx.api_version, (None, None))
    if encoded is None or offset != ctx.broker.image.offset:
        encoded = EncodedResponse()
        encoded.chunks = whole_answer(ctx.broker.metadata, _shown(ctx)).encode_chunks(ctx.api_version)
        ctx.broker.encoded_api_versions[ctx.api_version] = (ctx.broker.image.offset, encoded)
    return encoded


@api(ApiVersionsRequest, listener=CONTROLLER)
def controllers_api_versions(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return every API of a controller with its versions, and the features."""
    return refused(ctx, request) or whole_answer(ctx.broker.metadata, CONTROLLER_APIS)


def _shown(ctx: RequestContext) -> list[ApiKey]:
    """The APIs to list: the telemetry APIs only if there is a listener that shows the metrics."""
    hidden = TELEMETRY_APIS if ctx.broker.config[METRICS_LISTENER] is None else frozenset()
    return [key for key in BROKER_APIS if key not in hidden]


def refused(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse | None:
    """The answer to a request that is invalid or of a version that is not served; keeps the client's software."""
    if not _FIRST_VERSION <= ctx.api_version <= _LAST_VERSION:
        return ApiVersionsResponse(
            error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=[_versions_of(ApiKey.API_VERSIONS)]
        )
    if ctx.api_version >= FIRST_VERSION_WITH_CLIENT_SOFTWARE:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=int(ErrorCode.INVALID_REQUEST))
        error = _error_of_node(ctx, request)
        if error:
            return ApiVersionsResponse(error_code=int(error))
        ctx.connection.client_software = (name, version)
    if ctx.connection.authenticator is not None:
        ctx.connection.authenticator.versions_answered()
    return None


def _error_of_node(ctx: RequestContext, request: ApiVersionsRequest) -> ErrorCode:
    """REBOOTSTRAP_REQUIRED for a client that meant another node or cluster; it names both, or none (KIP-1242)."""
    if ctx.api_version < FIRST_VERSION_WITH_NODE or (request.cluster_id is None and request.node_id == _NO_NODE):
        return ErrorCode.NONE
    if request.cluster_id is None or request.node_id == _NO_NODE:
        return ErrorCode.INVALID_REQUEST
    if (request.cluster_id, request.node_id) != (ctx.broker.cluster_id, ctx.broker.node_id):
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def whole_answer(metadata: Metadata, apis: Iterable[ApiKey]) -> ApiVersionsResponse:
    """Every API with its versions, and the features, as they are now."""
    response = ApiVersionsResponse(api_keys=[_versions_of(key) for key in sorted(apis)])
    _add_features(metadata, response)
    return response


def _versions_of(key: ApiKey) -> ApiVersion:
    first, last = served_versions(key)
    if key == ApiKey.PRODUCE:
        first = FIRST_PRODUCE_VERSION_SHOWN
    return ApiVersion(api_key=int(key), min_version=first, max_version=last)


def _add_features(metadata: Metadata, response: ApiVersionsResponse) -> None:
    """Add the supported features, and the finalized features that this broker supports.

    A data directory that Kafka has formatted may have other features, which clients must not expect here.
    """
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
        for name, (lowest, highest) in metadata.supported_features.items()
    ]
    image = metadata.image
    response.finalized_features_epoch = image.offset
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in image.finalized_features.items()
        if name in metadata.supported_features
    ]
