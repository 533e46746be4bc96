"""kafka-delete-records: delete the records before offsets that a JSON file names."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Parser, Usage
from barnabas.cli.kafka_tools.common import Failed, connect
from barnabas.cli.kafka_tools.errors import exception_of
from barnabas.client.admin.topics import delete_records
from barnabas.client.offsets import TopicPartition

VERSION = 1
EXAMPLE = '{"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}'

PARSER = Parser(
    "kafka-delete-records",
    "This tool helps to delete records of the given partitions down to the specified offset.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("offset-json-file", f"File with partitions and offsets, -1 for all records: {EXAMPLE}", "FILE"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PARSER.purpose)
    options = PARSER.parse(arguments)
    options.require("bootstrap-server", "offset-json-file")
    try:
        offsets = _offsets(options.only("offset-json-file"))
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    with connect(options) as cluster:
        print("Executing records delete operation")
        outcome = delete_records(cluster, offsets)
        print("Records delete operation completed:")
        for topic, index in offsets:
            result = outcome[topic, index]
            text = f"low_watermark: {result}" if isinstance(result, int) else f"error: {exception_of(result)}"
            print(f"partition: {topic}-{index}\t{text}")
    return 0


def _offsets(path: str) -> dict[TopicPartition, int]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise Failed(f"Unable to read file {path}") from None
    except ValueError as error:
        raise Failed(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise Failed(f"The input string is not a valid JSON: a file has the form {EXAMPLE}")
    if content.get("version", VERSION) != VERSION:
        raise Failed(f"Not supported version field value {content['version']}")
    if "partitions" not in content:
        raise Failed("Missing partitions field")
    return _partitions(content["partitions"])


def _partitions(entries: Any) -> dict[TopicPartition, int]:
    try:
        offsets = [((str(entry["topic"]), int(entry["partition"])), int(entry["offset"])) for entry in entries]
    except (KeyError, TypeError, ValueError):
        raise Failed(f"a partition has topic, partition and offset, as in {EXAMPLE}") from None
    twice = [
        f"{topic}-{index}"
        for (topic, index), count in Counter(partition for partition, _ in offsets).items()
        if count > 1
    ]
    if twice:
        raise Failed(f"Offset json file contains duplicate topic partitions: {','.join(twice)}")
    return dict(offsets)
