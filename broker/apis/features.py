"""UpdateFeatures (57): raise or lower the levels of features that the cluster has agreed on (KIP-584, KIP-778).

Version 1 tells upgrades from downgrades and can only check; from version 2 on there are no results of single features:
all updates happen or none.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.coord.cluster.feature_changes import FeatureChanges, FeatureUpdate
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message

logger = logging.getLogger("kafka.controller.FeatureControlManager")

LAST_VERSION_WITH_RESULTS = 1


@api(UpdateFeaturesRequest)
def update_features(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Set all the levels, or none and say why."""
    controller = ctx.broker.controller
    response = UpdateFeaturesResponse(error_message=None)
    updates = [FeatureUpdate(one.feature, one.max_version_level, one.upgrade_type) for one in request.feature_updates]
    try:
        changes = FeatureChanges(controller.image, controller.supported_features, ctx.broker.node_id)
        records: list[Message] = [*changes.update(updates)]
        if not request.validate_only:
            controller.commit(Outcome(records, response))
            for record in updates:
                logger.info("Feature %s has level %d now", record.name, record.level)
    except KafkaError as error:
        logger.warning("Features are not updated: %s", error)
        response.error_code = int(error.code)
        response.error_message = (
            f"The update failed for all features since the following feature had an error: {error.message}"
        )
    if ctx.api_version <= LAST_VERSION_WITH_RESULTS:
        sentence = _INVALID_UPDATE if response.error_code == ErrorCode.INVALID_UPDATE_VERSION else None
        response.results = [
            UpdatableFeatureResult(feature=update.name, error_code=response.error_code, error_message=sentence)
            for update in updates
        ]
    return response


_INVALID_UPDATE = "The given update version was invalid."
