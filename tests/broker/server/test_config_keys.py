"""The broker keys: compared with Kafka's own table; the `used` marks compared with the code."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from barnabas.broker.config import keys as config_keys
from barnabas.broker.config.config_schema import FIXED
from barnabas.broker.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS, KAFKA_KEYS, OWN_KEYS
from barnabas.storage.topic_keys import SYNONYMS, TOPIC_KEYS
from barnabas.wire.configdef import PER_BROKER, READ_ONLY

ROOT = Path(__file__).parents[3]
TABLE = json.loads((ROOT / "tests" / "data" / "kafka-4.4.0-configs.json").read_text())


def test_every_broker_key_is_declared_as_kafka_declares_it() -> None:
    for entry in TABLE["broker_configs"]:
        key = KAFKA_KEYS[entry["name"]]
        declared = {
            "name": key.name,
            "type": key.type,
            "default": None if key.required else "null" if key.default is None else key.format(key.default),
            "required": key.required,
            "valid": key.valid,
            "importance": key.importance,
        }
        assert declared == {**entry, "valid": entry.get("valid") or ""}
    assert len(KAFKA_KEYS) == len(TABLE["broker_configs"])


def test_exactly_kafkas_dynamic_keys_can_change_in_a_running_broker() -> None:
    dynamic = {name for name, key in {**KAFKA_KEYS, **DYNAMIC_ONLY_KEYS}.items() if key.dynamic != READ_ONLY}
    assert dynamic == set(TABLE["dynamic_broker_configs"])


def test_keys_of_listeners_and_tls_change_only_on_a_named_broker() -> None:
    assert KAFKA_KEYS["listeners"].dynamic == PER_BROKER
    assert KAFKA_KEYS["ssl.keystore.location"].dynamic == PER_BROKER
    assert KAFKA_KEYS["max.connections"].dynamic != PER_BROKER


def test_own_keys_are_under_barnabas() -> None:
    assert all(name.startswith("barnabas.") for name in OWN_KEYS)


def test_every_key_has_one_sentence_of_documentation() -> None:
    for key in [*BROKER_KEYS.values(), *DYNAMIC_ONLY_KEYS.values(), *TOPIC_KEYS.values()]:
        assert key.doc.endswith("."), key.name
        assert len(key.doc) > 15, key.name


def _names_in_code(*packages: str) -> set[str]:
    """Every name and attribute that the code outside of the declarations uses."""
    names: set[str] = set()
    for package in packages:
        for path in (ROOT / package).rglob("*.py"):
            if "keys" not in path.parts and path.name not in ("log_config.py", "topic_keys.py"):
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.Name):
                        names.add(node.id)
                    elif isinstance(node, ast.Attribute):
                        names.add(node.attr)
    return names


def test_topic_keys_are_marked_used_when_code_reads_them_and_only_then() -> None:
    names = _names_in_code("storage", "broker", "coord")
    names.discard("compression_type")  # a field of PushTelemetry
    read = {name for name in TOPIC_KEYS if name.replace(".", "_") in names}
    assert {name for name, key in TOPIC_KEYS.items() if key.used} == read


def test_broker_keys_are_marked_used_when_code_reads_them_and_only_then() -> None:
    names = _names_in_code("broker", "barnabas")
    constants = {
        key.name: constant
        for module in vars(config_keys).values()
        if getattr(module, "__name__", "").startswith("barnabas.broker.config.keys.")
        for constant, key in vars(module).items()
        if getattr(key, "name", None) in BROKER_KEYS
    }
    read = {name for name, constant in constants.items() if constant in names}
    through_topics = {name for topic, synonyms in SYNONYMS.items() if TOPIC_KEYS[topic].used for name, _ in synonyms}
    assert {name for name, key in BROKER_KEYS.items() if key.used} == read | through_topics


def test_every_used_dynamic_key_takes_effect_or_is_rejected() -> None:
    """An accepted change takes effect: in the server, the partitions, the groups, and the cleaner's next pass."""
    followed = {
        "barnabas.authentication.timeout.ms",
        "barnabas.produce.validation",
        "barnabas.unauthenticated.connections.max",
        "barnabas.unauthenticated.requests.max.bytes",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.connection.creation.rate",
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.topic.name.prefix",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "group.consumer.assignment.interval.ms",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.protocol",
    }
    topics = {name for synonyms in SYNONYMS.values() for name, _ in synonyms}
    dynamic = {name for name, key in BROKER_KEYS.items() if key.used and key.dynamic != READ_ONLY}
    assert dynamic - topics - FIXED == followed
