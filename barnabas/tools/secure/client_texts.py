"""The configurations of clients that log in at a broker with `--secure`, to be pasted as they are."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

PROTOCOL: Final = "SASL_SSL"
MECHANISM: Final = "SCRAM-SHA-512"
LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Login(NamedTuple):
    """The address that a client connects to, and its credentials."""

    address: str
    """HOST:PORT."""
    ca: str
    """The file of the CA's certificate."""
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.address}, {self.user})"


def java_properties(login: Login) -> dict[str, str]:
    """The keys of Java's client."""
    return {
        "bootstrap.servers": login.address,
        "security.protocol": PROTOCOL,
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": f"{LOGIN_MODULE} required username={_quoted(login.user)} "
        f"password={_quoted(login.password)};",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": login.ca,
    }


def properties_file(login: Login) -> str:
    """The content of client.properties."""
    lines = (f"{key}={_escaped(value)}\n" for key, value in java_properties(login).items())
    return "".join(lines)


def configurations(login: Login, properties: str) -> str:
    """The configurations to show; `properties` is the path of the client.properties."""
    return TEXT.format(
        confluent=_dict(
            {
                "bootstrap.servers": login.address,
                "security.protocol": PROTOCOL,
                "sasl.mechanism": MECHANISM,
                "sasl.username": login.user,
                "sasl.password": login.password,
                "ssl.ca.location": login.ca,
            }
        ),
        kafka_python=_dict(
            {
                "bootstrap_servers": login.address,
                "security_protocol": PROTOCOL,
                "sasl_mechanism": MECHANISM,
                "sasl_plain_username": login.user,
                "sasl_plain_password": login.password,
                "ssl_cafile": login.ca,
            }
        ),
        path=properties,
        properties=properties_file(login),
        spark="\n".join(
            f"  .option({_text(f'kafka.{key}')}, {_text(value)})" for key, value in java_properties(login).items()
        ),
    )


def _dict(values: dict[str, str]) -> str:
    return "\n".join(f"    {_text(key)}: {_text(value)}," for key, value in values.items())


def _text(value: str) -> str:
    """A text as Python has it."""
    return json.dumps(value)


def _quoted(value: str) -> str:
    """A value of a line of JAAS."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(value: str) -> str:
    """A value of a properties file; non-ASCII characters as Java reads them in every encoding."""
    escaped = value.replace("\\", "\\\\")
    return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in escaped)


TEXT: Final = """\
# confluent-kafka
secured = {{
{confluent}
}}
Producer(secured)
Consumer(secured | {{"group.id": "my-group", "auto.offset.reset": "earliest"}})

# kafka-python
secured = {{
{kafka_python}
}}
KafkaProducer(**secured)
KafkaConsumer("my-topic", **secured, auto_offset_reset="earliest")

# Java, Kafka's tools, barnabas ... --command-config {path}
{properties}
# Spark
(spark.readStream.format("kafka")
{spark}
  .option("subscribe", "my-topic").load())
"""
