"""GetTelemetrySubscriptions (71), PushTelemetry (72). KIP-714.

They are answered always, as by Kafka, and shown in ApiVersions where the metrics can be read: Kafka needs a plug-in,
Barnabas `barnabas.metrics.listener`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import in_slices
from barnabas.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(GetTelemetrySubscriptionsRequest)
async def get_telemetry_subscriptions(
    ctx: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Say which metrics the client should push, and how often."""
    return await in_slices(ctx.broker.client_metrics.subscribe(request, ctx.client_id, ctx.connection))


@api(PushTelemetryRequest)
async def push_telemetry(ctx: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Take the metrics of a client."""
    return await in_slices(ctx.broker.client_metrics.push(request, ctx.client_id, ctx.connection))
