"""The broker of a job: its address, and how connections to it are secured, for Spark and for librdkafka.

Spark's connector takes the names of Kafka's Java clients. librdkafka has names of its own for stores and for users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.spark.settings.pem import for_java

MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""The login module of each SASL mechanism."""
IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
LIBRDKAFKA: Final[Mapping[str, tuple[str, ...]]] = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
    "ssl.truststore.type": (),
    "ssl.keystore.type": (),
}
"""Keys that librdkafka knows by other names, or does not need."""


@dataclass(frozen=True)
class Security:
    """Checked keys of `[security]` with their values; `sasl.username` and `sasl.password` are in place of a JAAS line.

    `security.checked` makes it. Its text has no values.
    """

    items: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def protocol(self) -> str:
        """The security protocol."""
        return dict(self.items).get("security.protocol", "PLAINTEXT")

    def for_java(self) -> dict[str, str]:
        """The configuration of a Java client."""
        config = for_java(dict(self.items))
        name, password = config.pop("sasl.username", None), config.pop("sasl.password", None)
        if name is not None and password is not None:
            module = MODULES[config["sasl.mechanism"]]
            login = f'{module} required username="{_escaped(name)}" password="{_escaped(password)}";'
            config["sasl.jaas.config"] = login
        return config

    def for_librdkafka(self) -> dict[str, str]:
        """The configuration of a client of librdkafka."""
        config = {new: value for key, value in self.items for new in LIBRDKAFKA.get(key, (key,))}
        if IDENTIFICATION in config:
            config[IDENTIFICATION] = config[IDENTIFICATION] or "none"
        return config


@dataclass(frozen=True)
class Broker:
    """Where a cluster is reached, and how."""

    bootstrap: str
    security: Security = Security()

    def for_spark(self) -> dict[str, str]:
        """The options of Spark's source and sink."""
        config = {"bootstrap.servers": self.bootstrap, **self.security.for_java()}
        return {f"kafka.{key}": value for key, value in config.items()}

    def for_librdkafka(self) -> dict[str, str]:
        """The configuration of a client of librdkafka."""
        return {"bootstrap.servers": self.bootstrap, **self.security.for_librdkafka()}


def broker_of(address: str | Broker) -> Broker:
    """The broker at an address, without TLS and SASL."""
    return address if isinstance(address, Broker) else Broker(address)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
