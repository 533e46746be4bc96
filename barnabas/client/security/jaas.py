"""The line of `sasl.jaas.config`: a login module of Kafka's and its options, read as brokers read it.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

No error shows the line, which has a password.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coord.security import jaas
from barnabas.wire.configdef import ConfigError


class JaasError(ValueError):
    """The line is not in JAAS's form; the text is one sentence without any of its values."""


class Login(NamedTuple):
    """A login module and its options."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"Login({self.module}, {', '.join(self.options)})"  # without values

    @property
    def name(self) -> str:
        """The class of the module without its package."""
        return self.module.rpartition(".")[2]


def parse_jaas(text: str) -> Login:
    """The login module of a line. `JaasError` if it is in another form, or if there is more than one module."""
    try:
        return Login(*jaas.parse_jaas("sasl.jaas.config", text))
    except ConfigError as error:
        raise JaasError(f'{error}: it must be MODULE required NAME="VALUE" ...;') from None
