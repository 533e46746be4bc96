"""Secured listeners for the suites: which there are, and what each kind of client is configured with.

`compat/run NAME --secure PROTOCOL[/MECHANISM]`. A `Combination` names a security protocol and how clients authenticate
on it. `ClientSettings` gives the configuration of every kind of client for one broker, secured or not, so that tests
always ask it: without `--secure` it has the addresses only.
"""

from __future__ import annotations

import ssl
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

MUTUAL: Final = "mTLS"
UNSECURED_TOKENS: Final = "OAUTHBEARER-UNSECURED"
"""OAUTHBEARER with unsigned tokens (KIP-255): clients of librdkafka and Java make them."""
PASSWORDS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WAYS: Final = {
    "SSL": ("", MUTUAL),
    "SASL_PLAINTEXT": (*PASSWORDS, "OAUTHBEARER", UNSECURED_TOKENS),
    "SASL_SSL": (*PASSWORDS, "OAUTHBEARER", UNSECURED_TOKENS),
}
"""The security protocols, and how clients authenticate on each."""
MODULES: Final = "org.apache.kafka.common.security"
LOGIN_MODULES: Final = {
    "PLAIN": f"{MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{MODULES}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{MODULES}.oauthbearer.OAuthBearerLoginModule",
}
TOKEN_LASTS_S: Final = 86_400


class Combination(NamedTuple):
    """A security protocol, and how clients authenticate: a mechanism of SASL, `mTLS` or nothing."""

    protocol: str
    way: str

    def __str__(self) -> str:
        return f"{self.protocol}/{self.way}" if self.way else self.protocol

    @property
    def has_tls(self) -> bool:
        """Whether the listener has a certificate."""
        return self.protocol.endswith("SSL")

    @property
    def mechanism(self) -> str:
        """`sasl.mechanism`; empty without SASL."""
        if not self.protocol.startswith("SASL"):
            return ""
        return "OAUTHBEARER" if self.way == UNSECURED_TOKENS else self.way


EVERY: Final = tuple(Combination(protocol, way) for protocol, ways in WAYS.items() for way in ways)


def combination(text: str) -> Combination:
    """The combination of `PROTOCOL[/MECHANISM]`. ArgumentTypeError, a sentence, if there is none."""
    for candidate in EVERY:
        if str(candidate).lower() == text.lower():
            return candidate
    raise ArgumentTypeError(f"there is no {text!r}: choose one of {', '.join(map(str, EVERY))}")


def _without(*ways: str) -> tuple[Combination, ...]:
    return tuple(combination for combination in EVERY if combination.way not in ways)


SIGNED: Final = _without(UNSECURED_TOKENS)
OF_CLIENT: Final = {
    "aiokafka": SIGNED,
    "confluent_kafka": SIGNED,
    "franz-go": SIGNED,
    "java": EVERY,
    "kafka-tools": EVERY,
    "kafka_python": SIGNED,
    "kafka_streams": EVERY,
    "kcat": _without("OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "spark": EVERY,
}
"""What each client has. Libraries take tokens from their users, signed or not; kcat only makes unsecured ones. Kafka 4
refuses the SCRAM of kcat's librdkafka too, which is older than 2.6.1."""


@dataclass(frozen=True, slots=True)
class Security:
    """What a client needs for a secured listener: files, a user and a password. The user may do everything."""

    combination: Combination
    ca: str
    """The certificate of the CA, PEM."""
    certificate: str
    """The client's key and certificate, PEM; used with mTLS only."""
    user: str
    password: str
    token_file: str
    """A signed token for OAUTHBEARER."""

    def token(self) -> str:
        """The signed token."""
        return Path(self.token_file).read_text()


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The configuration of each kind of client for one broker or cluster."""

    bootstrap: str
    security: Security | None = None

    @property
    def _combination(self) -> Combination:
        return Combination("PLAINTEXT", "") if self.security is None else self.security.combination

    def barnabas(self, timeout_s: float) -> Cluster:
        """The client of the command line. Calls that cannot be made in `timeout_s` fail."""
        from barnabas.client.cluster import Cluster
        from barnabas.client.security.settings import security_from

        return Cluster(self.bootstrap, timeout_s=timeout_s, security=security_from(self.security_properties()))

    def librdkafka(self) -> dict[str, Any]:
        """confluent-kafka. With OAUTHBEARER it has `oauth_cb`."""
        from time import time

        config: dict[str, Any] = {"bootstrap.servers": self.bootstrap, **self._librdkafka()}
        security = self.security
        if security is not None and self._combination.way == "OAUTHBEARER":
            config["oauth_cb"] = lambda _: (security.token(), time() + TOKEN_LASTS_S)
        return config

    def _librdkafka(self) -> dict[str, str]:
        """Keys of librdkafka, without addresses and callbacks."""
        security, (protocol, way) = self.security, self._combination
        if security is None:
            return {}
        config = {"security.protocol": protocol}
        if self._combination.has_tls:
            config["ssl.ca.location"] = security.ca
        if way == MUTUAL:
            config |= {"ssl.certificate.location": security.certificate, "ssl.key.location": security.certificate}
        if self._combination.mechanism:
            config["sasl.mechanism"] = self._combination.mechanism
        if way in PASSWORDS:
            config |= {"sasl.username": security.user, "sasl.password": security.password}
        if way == UNSECURED_TOKENS:
            config["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
            config["sasl.oauthbearer.config"] = f"principal={security.user}"
        return config

    def kcat(self) -> list[str]:
        """Arguments of kcat."""
        pairs = [f"{key}={value}" for key, value in self._librdkafka().items()]
        return ["-b", self.bootstrap, *(word for pair in pairs for word in ("-X", pair))]

    def kafka_python(self) -> dict[str, Any]:
        """Keyword arguments of kafka-python's clients."""
        config = {"bootstrap_servers": self.bootstrap, **self._python()}
        security, (_, way) = self.security, self._combination
        if security is None:
            return config
        if self._combination.has_tls:
            config["ssl_cafile"] = security.ca
        if way == MUTUAL:
            config |= {"ssl_certfile": security.certificate, "ssl_keyfile": security.certificate}
        if way == "OAUTHBEARER":
            config["sasl_oauth_token_provider"] = _kafka_python_tokens(security)
        return config

    def aiokafka(self) -> dict[str, Any]:
        """Keyword arguments of aiokafka's clients. To be asked inside of an event loop."""
        config = {"bootstrap_servers": self.bootstrap, **self._python()}
        security, (_, way) = self.security, self._combination
        if security is None:
            return config
        if self._combination.has_tls:
            config["ssl_context"] = self.ssl_context()
        if way == "OAUTHBEARER":
            config["sasl_oauth_token_provider"] = _aiokafka_tokens(security)
        return config

    def _python(self) -> dict[str, Any]:
        """What the two clients in Python call the same."""
        security, (protocol, way) = self.security, self._combination
        if security is None:
            return {}
        config: dict[str, Any] = {"security_protocol": protocol}
        if self._combination.mechanism:
            config["sasl_mechanism"] = self._combination.mechanism
        if way in PASSWORDS:
            config |= {"sasl_plain_username": security.user, "sasl_plain_password": security.password}
        return config

    def ssl_context(self) -> ssl.SSLContext:
        """TLS of this listener for Python."""
        assert self.security is not None
        context = ssl.create_default_context(cafile=self.security.ca)
        if self._combination.way == MUTUAL:
            context.load_cert_chain(self.security.certificate)
        return context

    def franz_go(self) -> dict[str, str]:
        """The JSON of `-secure` of the program in `compat/franz-go`."""
        security, (_, way) = self.security, self._combination
        if security is None:
            return {}
        config = {"mechanism": self._combination.mechanism}
        if self._combination.has_tls:
            config["ca"] = security.ca
        if way == MUTUAL:
            config["certificate"] = security.certificate
        if way in PASSWORDS:
            config |= {"user": security.user, "password": security.password}
        if way == "OAUTHBEARER":
            config["token"] = security.token()
        return config

    def java(self) -> dict[str, str]:
        """Properties of the Java clients and of Kafka's tools, and of `barnabas --command-config`.

        With OAUTHBEARER the JVM needs `java_options` too.
        """
        config = {"bootstrap.servers": self.bootstrap}
        security, (protocol, way) = self.security, self._combination
        if security is None:
            return config
        config["security.protocol"] = protocol
        if self._combination.has_tls:
            config |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca}
        if way == MUTUAL:
            config |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": security.certificate}
        mechanism = self._combination.mechanism
        if mechanism:
            config["sasl.mechanism"] = mechanism
            config["sasl.jaas.config"] = f"{LOGIN_MODULES[mechanism]} required{_jaas_options(security)};"
        if way == "OAUTHBEARER":
            config["sasl.login.callback.handler.class"] = f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
            config["sasl.oauthbearer.token.endpoint.url"] = Path(security.token_file).as_uri()
        return config

    def java_options(self) -> list[str]:
        """Options of a JVM whose clients use these settings: it reads tokens from the named file only."""
        if self.security is None or self._combination.way != "OAUTHBEARER":
            return []
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={Path(self.security.token_file).as_uri()}"]

    def spark(self) -> dict[str, str]:
        """Options of Spark's source and sink."""
        return {f"kafka.{key}": value for key, value in self.java().items()}

    def security_properties(self) -> dict[str, str]:
        """The properties of `java` without the addresses, which most programs take as an option."""
        return {key: value for key, value in self.java().items() if key != "bootstrap.servers"}

    def write(self, path: Path) -> Path:
        """Write a client.properties with `security_properties`, such as `--command-config` takes."""
        path.write_text("".join(f"{key}={value}\n" for key, value in self.security_properties().items()))
        return path


def _jaas_options(security: Security) -> str:
    if security.combination.way == UNSECURED_TOKENS:
        return f' unsecuredLoginStringClaim_sub="{security.user}"'
    if security.combination.way in PASSWORDS:
        return f' username="{security.user}" password="{security.password}"'
    return ""


def _kafka_python_tokens(security: Security) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc, unused-ignore]
        def token(self) -> str:
            return security.token()

    return Tokens()


def _aiokafka_tokens(security: Security) -> Any:
    from aiokafka.abc import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc, unused-ignore]
        async def token(self) -> str:
            return security.token()

    return Tokens()
