"""A record as commands and code to copy: to read it again, and to produce it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote as shell_quote
from urllib.parse import quote

from barnabas.client.records.record_json import json_line
from barnabas.console.messages.found_records import FoundRecord
from barnabas.wire.batches.records import Record

MOST_BYTES = 16 * 1024
"""Of a record that is written into a snippet."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to copy."""

    name: str
    title: str
    text: str


def snippets(
    record: FoundRecord, topic: str, bootstrap: str, api_url: str, properties: Mapping[str, str]
) -> list[Snippet]:
    """The snippets of one record. `api_url` is the console's address; of `properties` only names are written."""
    path = f"{api_url}/api/messages/{quote(topic, safe='')}/{record.partition}/{record.offset}"
    is_short = len(record.key or b"") + len(record.value or b"") <= MOST_BYTES and not record.is_cut
    secured = f" --command-config {shell_quote('client.properties')}" if properties else ""
    consume = (
        f"barnabas consume {shell_quote(topic)} -b {shell_quote(bootstrap)}{secured} -p {record.partition} "
        f"-o {record.offset}:{record.offset + 1} --json"
    )
    made = [
        Snippet("curl", "Read with curl", f"curl -s {shell_quote(path)}"),
        Snippet("cli", "Read with barnabas", consume),
        Snippet("confluent", "Read with confluent-kafka", _consumer(record, topic, bootstrap, properties)),
    ]
    if is_short and not record.control and not record.problem:
        line = json_line((topic, record.partition), _plain(record)).decode().rstrip("\n")
        produce = f"barnabas produce {shell_quote(topic)} -b {shell_quote(bootstrap)}{secured} --json"
        made += [
            Snippet("cli-produce", "Produce with barnabas", f"printf '%s\\n' {shell_quote(line)} | {produce}"),
            Snippet(
                "confluent-produce", "Produce with confluent-kafka", _producer(record, topic, bootstrap, properties)
            ),
        ]
    return made


def _plain(record: FoundRecord) -> Record:
    return Record(record.offset, record.timestamp, record.key, record.value, record.headers)


def _config(bootstrap: str, properties: Mapping[str, str], **more: str) -> str:
    config = {"bootstrap.servers": bootstrap}
    config |= dict.fromkeys(properties, "...") | {name.replace("_", "."): value for name, value in more.items()}
    return json.dumps(config, indent=4).replace("\n", "\n    ") if len(config) > 2 else json.dumps(config)


def _consumer(record: FoundRecord, topic: str, bootstrap: str, properties: Mapping[str, str]) -> str:
    return (
        "from confluent_kafka import Consumer, TopicPartition\n\n"
        f"consumer = Consumer({_config(bootstrap, properties, group_id='look')})\n"
        f"consumer.assign([TopicPartition({topic!r}, {record.partition}, {record.offset})])\n"
        "record = consumer.poll(10)\n"
        "print(record.key(), record.value(), record.headers())\n"
        "consumer.close()\n"
    )


def _producer(record: FoundRecord, topic: str, bootstrap: str, properties: Mapping[str, str]) -> str:
    return (
        "from confluent_kafka import Producer\n\n"
        f"producer = Producer({_config(bootstrap, properties)})\n"
        "producer.produce(\n"
        f"    {topic!r},\n"
        f"    key={record.key!r},\n"
        f"    value={record.value!r},\n"
        f"    headers={record.headers!r},\n"
        ")\n"
        "producer.flush()\n"
    )
