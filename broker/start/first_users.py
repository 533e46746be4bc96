"""The users of `barnabas serve --secure`: a start gives them their passwords before clients are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.config.options import Secured
    from barnabas.broker.context import Broker


def set_passwords(broker: Broker, secured: Secured) -> None:
    """Make or change the users' credentials. ConfigError if the metadata refuses them, KafkaError if the disk fails."""
    try:
        broker.controller.set_passwords(secured.mechanism, secured.users, broker.random_bytes)
    except KafkaError as error:
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            raise
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            raise ConfigError(
                "--secure needs users of SCRAM, which the metadata of this directory cannot have: start without it and "
                "raise metadata.version ('barnabas features upgrade')"
            ) from error
        raise ConfigError(f"The users of --secure cannot be set: {error}") from error
