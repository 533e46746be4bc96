"""The line of `sasl.jaas.config`: a login module of Kafka's and its options, read as brokers read it.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

No error shows the line, which has a password.
"""

from __future__ import annotations

import re

from barnabas.coord.security import jaas
from barnabas.coord.security.jaas import LOGIN_MODULES, LoginModule
from barnabas.wire.configdef import ConfigError


class JaasError(ValueError):
    """The line is not in JAAS's form; the text is one sentence without any of its values."""


def login_line(mechanism: str, user: str, password: str, *, is_token: bool = False) -> str:
    """The line of a user who logs in with PLAIN or SCRAM. Every text is taken as it is: quotes and spaces too.

    `is_token`: the user is the id of a delegation token, the password its HMAC.
    """
    more = ' tokenauth="true"' if is_token else ""
    return f"{LOGIN_MODULES[mechanism]} required username={_quoted(user)} password={_quoted(password)}{more};"


def _quoted(text: str) -> str:
    return '"' + re.sub(r'[\x00-\x1f"\\]', lambda match: f"\\{ord(match[0]):03o}", text) + '"'


def parse_jaas(text: str) -> LoginModule:
    """The login module of a line. `JaasError` if it is in another form, or if there is more than one module."""
    try:
        return jaas.parse_jaas("sasl.jaas.config", text)
    except ConfigError as error:
        raise JaasError(f'{error}: it must be MODULE required NAME="VALUE" ...;') from None
