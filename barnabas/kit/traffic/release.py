"""Answering as an earlier release of Apache Kafka: its APIs, their versions and its features, and no others.

A request that the release does not know closes the connection, as Kafka's brokers do; one of ApiVersions is answered in
version 0 with UNSUPPORTED_VERSION. An API whose feature the release does not have finalized is answered
UNSUPPORTED_VERSION. Versions that Barnabas itself does not serve (Produce before 3) are named, and close the connection
all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.metadata.api_versions import refused, whole_answer
from barnabas.broker.apis.registry import TELEMETRY_APIS
from barnabas.broker.config.keys.own import METRICS_LISTENER
from barnabas.client.releases import releases
from barnabas.kit.errors import ControlError
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Handler
    from barnabas.broker.context import RequestContext

FEATURE_OF: Final = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "group.version",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "group.version",
    ApiKey.SHARE_GROUP_HEARTBEAT: "share.version",
    ApiKey.SHARE_GROUP_DESCRIBE: "share.version",
    ApiKey.SHARE_FETCH: "share.version",
    ApiKey.SHARE_ACKNOWLEDGE: "share.version",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams.version",
    ApiKey.STREAMS_GROUP_DESCRIBE: "streams.version",
}
"""APIs that a release may know, but does not serve before a feature is finalized."""


def release_named(name: str) -> Release:
    """A release by its name, such as 3.9. ControlError if it is not in the table."""
    try:
        row = releases()[name]
    except KeyError:
        raise ControlError(f"as_version is one of {', '.join(releases())}, not {name!r}") from None
    apis = {int(key): (first, last) for key, (first, last) in row["apis"].items()}
    return Release(name, apis, row["features"])


class Release:
    """The APIs and features of one Kafka release."""

    def __init__(self, name: str, apis: Mapping[int, tuple[int, int]], features: Mapping[str, tuple[int, int]]) -> None:
        """`apis`: first and last version by key; `features`: lowest and highest level by name."""
        self.name = name
        self._apis = apis
        self._features = features

    def check(self, api_key: int, api_version: int) -> None:
        """ProtocolError if the release does not have this version of an API."""
        if api_key not in self._apis:
            raise ProtocolError(f"the API {api_key} is not served by Kafka {self.name}, which this cluster answers as")
        first, last = self._apis[api_key]
        if not first <= api_version <= last:
            raise ProtocolError(
                f"{ApiKey(api_key).name} version {api_version} is not served by Kafka {self.name} ({first} to {last}), "
                "which this cluster answers as"
            )

    def handler(self, api_key: ApiKey, handler: Handler) -> Handler:
        """The handler of an API's requests."""
        if api_key == ApiKey.API_VERSIONS:
            return self._api_versions
        feature = FEATURE_OF.get(api_key)
        if feature is not None and self._features.get(feature, (0, 0))[1] < 1:
            return self._not_enabled
        return handler

    def _not_enabled(self, ctx: RequestContext, request: object) -> None:  # noqa: ARG002
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    def _api_versions(self, ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
        first, last = self._apis[ApiKey.API_VERSIONS]
        if not first <= ctx.api_version <= last:
            known = [ApiVersion(api_key=int(ApiKey.API_VERSIONS), min_version=first, max_version=last)]
            return ApiVersionsResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=known)
        refusal = refused(ctx, request)
        return self._response(ctx) if refusal is None else refusal

    def _response(self, ctx: RequestContext) -> ApiVersionsResponse:
        """The ApiVersions response of the release: the features and levels that this broker has too."""
        response = whole_answer(ctx.broker.metadata, ())
        hidden = TELEMETRY_APIS if ctx.broker.config[METRICS_LISTENER] is None else frozenset()
        response.api_keys = [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self._apis.items()
            if key not in hidden
        ]
        response.supported_features = [
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in self._features.items()
        ]
        finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
        levels = {
            name: min(level, self._features[name][1]) for name, level in finalized.items() if name in self._features
        }
        response.finalized_features = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level > 0
        ]
        if not self._features:
            response.finalized_features_epoch = -1
        return response
