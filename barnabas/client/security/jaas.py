"""The line of `sasl.jaas.config`: a login module of Kafka's and its options, read as brokers read it.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

No error shows the line, which has a password.
"""

from __future__ import annotations

from barnabas.coord.security import jaas
from barnabas.coord.security.jaas import LoginModule
from barnabas.wire.configdef import ConfigError


class JaasError(ValueError):
    """The line is not in JAAS's form; the text is one sentence without any of its values."""


def parse_jaas(text: str) -> LoginModule:
    """The login module of a line. `JaasError` if it is in another form, or if there is more than one module."""
    try:
        return jaas.parse_jaas("sasl.jaas.config", text)
    except ConfigError as error:
        raise JaasError(f'{error}: it must be MODULE required NAME="VALUE" ...;') from None
