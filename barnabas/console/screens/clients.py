"""Configurations of six clients for a cluster, to copy. Secrets are placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

USER, PASSWORD, CA = "USER", "PASSWORD", "ca.pem"


@dataclass(frozen=True)
class ClientText:
    """The configuration of one client."""

    name: str
    language: str
    text: str


def client_texts(bootstrap: str, properties: Mapping[str, str]) -> list[ClientText]:
    """The configurations for brokers at `bootstrap`; `properties` are the console's own keys of TLS and SASL."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    mechanism = properties.get("sasl.mechanism", "").upper() if protocol.startswith("SASL") else ""
    has_tls = protocol.endswith("SSL")
    return [
        ClientText("Java", "properties", _java(bootstrap, protocol, mechanism, has_tls=has_tls)),
        ClientText("confluent-kafka", "Python", _librdkafka(bootstrap, protocol, mechanism, has_tls=has_tls)),
        ClientText("kafka-python", "Python", _kafka_python(bootstrap, protocol, mechanism, has_tls=has_tls)),
        ClientText("franz-go", "Go", _franz_go(bootstrap, mechanism, has_tls=has_tls)),
        ClientText("KafkaJS", "Node.js", _kafka_js(bootstrap, mechanism, has_tls=has_tls)),
        ClientText("kcat", "shell", _kcat(bootstrap, protocol, mechanism, has_tls=has_tls)),
    ]


def _java(bootstrap: str, protocol: str, mechanism: str, *, has_tls: bool) -> str:
    lines = [f"bootstrap.servers={bootstrap}"]
    if protocol != "PLAINTEXT":
        lines.append(f"security.protocol={protocol}")
    if mechanism:
        module = "scram.ScramLoginModule" if mechanism.startswith("SCRAM") else "plain.PlainLoginModule"
        lines += [
            f"sasl.mechanism={mechanism}",
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required \\",
            f'  username="{USER}" password="{PASSWORD}";',
        ]
    if has_tls:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={CA}"]
    return "\n".join(lines)


def _librdkafka(bootstrap: str, protocol: str, mechanism: str, *, has_tls: bool) -> str:
    keys = {"bootstrap.servers": bootstrap, **_librdkafka_keys(protocol, mechanism, has_tls=has_tls)}
    shown = "".join(f'    "{key}": "{value}",\n' for key, value in keys.items())
    return (
        "from confluent_kafka import Consumer, Producer\n\n"
        f"config = {{\n{shown}}}\n"
        "producer = Producer(config)\n"
        'consumer = Consumer({**config, "group.id": "my-group", "auto.offset.reset": "earliest"})'
    )


def _librdkafka_keys(protocol: str, mechanism: str, *, has_tls: bool) -> dict[str, str]:
    keys = {} if protocol == "PLAINTEXT" else {"security.protocol": protocol}
    if mechanism:
        keys |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    if has_tls:
        keys["ssl.ca.location"] = CA
    return keys


def _kafka_python(bootstrap: str, protocol: str, mechanism: str, *, has_tls: bool) -> str:
    arguments = {"bootstrap_servers": bootstrap}
    if protocol != "PLAINTEXT":
        arguments["security_protocol"] = protocol
    if mechanism:
        arguments |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }
    if has_tls:
        arguments["ssl_cafile"] = CA
    shown = "".join(f'    {name}="{value}",\n' for name, value in arguments.items())
    return (
        "from kafka import KafkaConsumer, KafkaProducer\n\n"
        f"config = dict(\n{shown})\n"
        "producer = KafkaProducer(**config)\n"
        'consumer = KafkaConsumer("my-topic", group_id="my-group", auto_offset_reset="earliest", **config)'
    )


def _franz_go(bootstrap: str, mechanism: str, *, has_tls: bool) -> str:
    options = [f'kgo.SeedBrokers("{bootstrap}"),' if "," not in bootstrap else _go_brokers(bootstrap)]
    if has_tls:
        options.append("kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), // pool: the certificates of ca.pem")
    if mechanism.startswith("SCRAM"):
        kind = mechanism.removeprefix("SCRAM-SHA-")
        options.append(f'kgo.SASL(scram.Auth{{User: "{USER}", Pass: "{PASSWORD}"}}.AsSha{kind}Mechanism()),')
    elif mechanism:
        options.append(f'kgo.SASL(plain.Auth{{User: "{USER}", Pass: "{PASSWORD}"}}.AsMechanism()),')
    shown = "".join(f"    {option}\n" for option in options)
    return (
        "client, err := kgo.NewClient(\n"
        f"{shown}"
        '    kgo.ConsumerGroup("my-group"),\n'
        '    kgo.ConsumeTopics("my-topic"),\n'
        ")"
    )


def _go_brokers(bootstrap: str) -> str:
    return "kgo.SeedBrokers(" + ", ".join(f'"{address}"' for address in bootstrap.split(",")) + "),"


def _kafka_js(bootstrap: str, mechanism: str, *, has_tls: bool) -> str:
    brokers = ", ".join(f'"{address}"' for address in bootstrap.split(","))
    lines = [f"  brokers: [{brokers}],"]
    if has_tls:
        lines.append(f'  ssl: {{ ca: [fs.readFileSync("{CA}", "utf-8")] }},')
    if mechanism:
        lines.append(f'  sasl: {{ mechanism: "{mechanism.lower()}", username: "{USER}", password: "{PASSWORD}" }},')
    shown = "\n".join(lines)
    return (
        'const { Kafka } = require("kafkajs")\n\n'
        f'const kafka = new Kafka({{\n  clientId: "my-app",\n{shown}\n}})\n'
        "const producer = kafka.producer()\n"
        'const consumer = kafka.consumer({ groupId: "my-group" })'
    )


def _kcat(bootstrap: str, protocol: str, mechanism: str, *, has_tls: bool) -> str:
    keys = _librdkafka_keys(protocol, mechanism, has_tls=has_tls)
    shown = "".join(f" \\\n  -X {key}={value}" for key, value in keys.items())
    return f"kcat -b {bootstrap}{shown} -L"
