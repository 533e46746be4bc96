"""Recorded exchanges in the form that a cassette has."""

from __future__ import annotations

from barnabas.kit.cassette.exchange import Exchange
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.frame import api_versions_response_version, parse_request_header, parse_response_header
from tests.support.requests import recorded


def exchange_of(frames: recorded.Exchange) -> Exchange:
    """What a proxy makes of the frames of a real client and of Kafka."""
    api = ApiKey(frames.api_key)
    header, request_at = parse_request_header(frames.request)
    _, response_at = parse_response_header(frames.response, api, frames.version)
    response, version = frames.response[response_at:], frames.version
    if api == ApiKey.API_VERSIONS:
        version = api_versions_response_version(response, version)
    request = frames.request[request_at:]
    return Exchange(1, 1.25, api, frames.version, header.client_id, request, response, version, 0.5)
