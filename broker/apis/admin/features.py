"""UpdateFeatures (57): change the finalized levels of features (KIP-584, KIP-778).

v1 distinguishes upgrades from downgrades, and can validate only; v2 has no results of single features: all updates are
made, or none.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.registry import api
from barnabas.coord.cluster.changes.feature_changes import FeatureUpdate
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

logger = logging.getLogger("kafka.controller.FeatureControlManager")

LAST_VERSION_WITH_RESULTS = 1
_INVALID_UPDATE = "The given update version was invalid."


@api(UpdateFeaturesRequest, requires=Operation.ALTER, send_before_close=True)
async def update_features(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Set the levels of all features, or report the first error and set none."""
    local = ctx.broker.controller.local
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    ]
    try:
        response = await change_metadata(ctx, lambda: local.update_features_in_steps(request))
    except KafkaError as error:
        response = _failed(error)
    if not response.error_code and not request.validate_only:
        for update in updates:
            logger.info("Feature %s now has level %d", update.name, update.level)
    if ctx.api_version <= LAST_VERSION_WITH_RESULTS:
        sentence = _INVALID_UPDATE if response.error_code == ErrorCode.INVALID_UPDATE_VERSION else None
        response.results = [
            UpdatableFeatureResult(feature=update.name, error_code=response.error_code, error_message=sentence)
            for update in updates
        ]
    return response


def _failed(error: KafkaError) -> UpdateFeaturesResponse:
    logger.warning("Cannot update features: %s", error)
    return UpdateFeaturesResponse(
        error_code=int(error.code),
        error_message=(f"The update failed for all features since the following feature had an error: {error.message}"),
    )
