"""Partitions on the command line: `TOPIC` (all of them), `TOPIC:2`, `TOPIC:0,3`; and files with an offset of each.

Such a file is CSV with a line `TOPIC,PARTITION,OFFSET` for each partition, as kafka-consumer-groups.sh exports it (for
several groups `GROUP,TOPIC,PARTITION,OFFSET`), or the JSON of kafka-delete-records.sh.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

TopicPartition = tuple[str, int]


class OffsetLine(NamedTuple):
    """A partition's offset in a file; `group` only where the file names groups."""

    group: str | None
    topic: str
    partition: int
    offset: int


def split_partitions(text: str, option: str) -> tuple[str, list[int] | None]:
    """The topic of `TOPIC[:PARTITION,...]`, and its partitions; None for all."""
    name, colon, numbers = text.partition(":")
    indexes = numbers.split(",")
    if not name or (colon and not all(number.isascii() and number.isdigit() for number in indexes)):
        raise click.BadParameter(f"must be TOPIC or TOPIC:PARTITION,..., not {text!r}", param_hint=option)
    return name, [int(number) for number in indexes] if colon else None


def named_partitions(cluster: Cluster, texts: Sequence[str], option: str) -> list[TopicPartition]:
    """The partitions that `texts` name, each once. `NotFound` for a topic or partition that does not exist."""
    partitions: dict[TopicPartition, None] = {}
    for text in texts:
        name, indexes = split_partitions(text, option)
        count = partition_count(cluster, name, indexes or ())
        partitions.update(dict.fromkeys((name, index) for index in (range(count) if indexes is None else indexes)))
    return list(partitions)


def partition_count(cluster: Cluster, name: str, indexes: Sequence[int]) -> int:
    """The number of partitions of a topic; `NotFound` if one of `indexes` does not exist."""
    from barnabas.client.errors import NotFound

    count = len(cluster.find_topic(name).leaders)
    for index in indexes:
        if index >= count:
            last = f"partitions 0 to {count - 1}" if count > 1 else "partition 0"
            raise NotFound(f"topic {name!r} has no partition {index}, only {last}")
    return count


def read_offsets(path: str, option: str) -> list[OffsetLine]:
    """The offsets in a file; a usage error names the line that is wrong. `-` is stdin."""
    with click.open_file(path, encoding="utf-8") as file:
        try:
            text = file.read()
        except UnicodeDecodeError:
            raise click.BadParameter(f"{path} is not text in UTF-8", param_hint=option) from None
    lines = list(_from_json(text, path, option) if text.lstrip().startswith("{") else _from_csv(text, path, option))
    if not lines:
        raise click.BadParameter(f"{path} has no offsets", param_hint=option)
    seen: set[tuple[str | None, str, int]] = set()
    for line in lines:
        if line[:3] in seen:
            raise click.BadParameter(f"{path} has {line.topic}-{line.partition} twice", param_hint=option)
        seen.add(line[:3])
    return lines


def _from_csv(text: str, path: str, option: str) -> Iterator[OffsetLine]:
    for number, fields in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), 1):
        words = [field.strip() for field in fields]
        if not any(words) or words[0].startswith("#"):
            continue
        if len(words) not in (3, 4) or not words[-2].isdigit() or not words[-1].lstrip("-").isdigit():
            raise click.BadParameter(
                f"line {number} of {path} is not TOPIC,PARTITION,OFFSET: {','.join(fields)!r}", param_hint=option
            )
        yield OffsetLine(words[0] if len(words) == 4 else None, words[-3], int(words[-2]), int(words[-1]))


def _from_json(text: str, path: str, option: str) -> Iterator[OffsetLine]:
    try:
        for entry in json.loads(text)["partitions"]:
            yield OffsetLine(None, str(entry["topic"]), int(entry["partition"]), int(entry["offset"]))
    except (ValueError, KeyError, TypeError) as error:
        raise click.BadParameter(
            f'{path} is not {{"partitions": [{{"topic": NAME, "partition": N, "offset": N}}]}}: {error!r}',
            param_hint=option,
        ) from None
