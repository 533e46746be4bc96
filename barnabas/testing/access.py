"""The settings with which each client reaches a cluster: an address, and a log-in if one is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Access:
    """The address of a cluster, and how its clients log in."""

    def __init__(self, bootstrap_servers: str, security: Mapping[str, str] | None = None) -> None:
        """`security` is as the control channel has it; None: clients do not log in."""
        self.bootstrap_servers = bootstrap_servers
        self.security = dict(security or {})

    @property
    def username(self) -> str | None:
        """The user; None without a log-in."""
        return self.security.get("username")

    @property
    def password(self) -> str | None:
        """The user's password; None without a log-in."""
        return self.security.get("password")

    @property
    def ca_file(self) -> str | None:
        """The certificate that clients trust; None without TLS."""
        return self.security.get("ca")

    def confluent(self) -> dict[str, str]:
        """The configuration of confluent-kafka, and of every client of librdkafka."""
        names = {
            "protocol": "security.protocol",
            "mechanism": "sasl.mechanism",
            "username": "sasl.username",
            "password": "sasl.password",
            "ca": "ssl.ca.location",
        }
        return {"bootstrap.servers": self.bootstrap_servers} | self._named(names)

    def kafka_python(self) -> dict[str, str]:
        """The arguments of kafka-python's clients."""
        names = {
            "protocol": "security_protocol",
            "mechanism": "sasl_mechanism",
            "username": "sasl_plain_username",
            "password": "sasl_plain_password",
            "ca": "ssl_cafile",
        }
        return {"bootstrap_servers": self.bootstrap_servers} | self._named(names)

    def aiokafka(self) -> dict[str, object]:
        """The arguments of aiokafka's clients."""
        arguments: dict[str, object] = dict(self.kafka_python())
        if arguments.pop("ssl_cafile", None):
            import ssl

            arguments["ssl_context"] = ssl.create_default_context(cafile=self.ca_file)
        return arguments

    def java(self) -> dict[str, str]:
        """The properties of Java's clients."""
        properties = {"bootstrap.servers": self.bootstrap_servers}
        properties |= self._named({"protocol": "security.protocol", "mechanism": "sasl.mechanism"})
        if self.username is not None:
            module = _MODULES[self.security["mechanism"]]
            properties["sasl.jaas.config"] = f'{module} required username="{self.username}" password="{self.password}";'
        if self.ca_file is not None:
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        return properties

    def spark(self) -> dict[str, str]:
        """The options of Spark's `format("kafka")`."""
        return {f"kafka.{name}": value for name, value in self.java().items()}

    def _named(self, names: Mapping[str, str]) -> dict[str, str]:
        return {name: self.security[ours] for ours, name in names.items() if ours in self.security}
