"""GetTelemetrySubscriptions (71), PushTelemetry (72). KIP-714.

They are answered always, as by Kafka, and shown in ApiVersions where the metrics have somewhere to go: Kafka asks for a
plug-in, Barnabas for `barnabas.metrics.listener`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.apis.sliced_response import respond_in_steps
from barnabas.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse


@api(GetTelemetrySubscriptionsRequest)
def get_telemetry_subscriptions(
    ctx: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse | DelayedResponse:
    """Say which metrics the client should push, and how often."""
    return respond_in_steps(ctx, ctx.broker.client_metrics.subscribe(request, ctx.client_id, ctx.connection))


@api(PushTelemetryRequest)
def push_telemetry(ctx: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse | DelayedResponse:
    """Take the metrics of a client."""
    return respond_in_steps(ctx, ctx.broker.client_metrics.push(request, ctx.client_id, ctx.connection))
