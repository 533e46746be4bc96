"""Removes expired delegation tokens from the metadata: a job of the controller (KIP-48)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.security.tokens import expired_tokens
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.metadata.controller import Controller

logger = logging.getLogger("kafka.controller.DelegationTokenControlManager")


def remove_expired_tokens(controller: Controller) -> None:
    """Remove the tokens that can no longer be used; they are not accepted before that either."""

    def removed(outcome: int | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            logger.error("Expired delegation tokens could not be removed: %s. It is tried again", outcome)
        elif outcome:
            logger.info("Removed %d expired delegation tokens", outcome)

    def validate() -> Outcome[int]:
        records = expired_tokens(controller.image.tokens, controller.at().now_ms)
        return Outcome(records, len(records))

    controller.commit(validate, removed)
