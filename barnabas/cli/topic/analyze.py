"""`barnabas topic analyze`: batches and records of a time range, by topic and partition, as rpk's.

Only the headers of batches are read, nothing is decompressed: sizes are those on the wire and on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import click

from barnabas.cli.options.offset_spec import parse_range
from barnabas.cli.options.parameters import listing_options
from barnabas.cli.options.patterns import select
from barnabas.client.admin.topics import describe_topics, list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition
from barnabas.client.positions import OffsetSpec, resolve_offset_specs
from barnabas.client.reader import Reader
from barnabas.terminal.notes import note
from barnabas.terminal.tables import is_document, show, show_rows
from barnabas.wire.batches.records import BatchView, Codec

SIZES = ("p25", "p50", "p75", "p99", "max")


@dataclass
class Sample:
    """The batches of a partition or of a topic."""

    sizes: list[int] = field(default_factory=list, init=False)
    records: int = field(default=0, init=False)
    codecs: Counter[str] = field(default_factory=Counter, init=False)
    first_ms: int | None = field(default=None, init=False)
    last_ms: int | None = field(default=None, init=False)

    def add(self, batch: BatchView) -> None:
        """Count a batch."""
        self.sizes.append(batch.size)
        self.records += batch.record_count
        self.codecs[Codec(batch.codec).name.lower()] += 1
        self.first_ms = _least((self.first_ms, batch.base_timestamp))
        self.last_ms = max(self.last_ms or batch.max_timestamp, batch.max_timestamp)

    def merge(self, other: Sample) -> None:
        """Count the batches of another sample."""
        self.sizes += other.sizes
        self.records += other.records
        self.codecs += other.codecs
        self.first_ms = _least((self.first_ms, other.first_ms))
        self.last_ms = max(self.last_ms or -1, other.last_ms or -1)

    def row(self) -> dict[str, object]:
        """The numbers; rates are over the time between the first and the last record."""
        batches, total = len(self.sizes), sum(self.sizes)
        span_ms = (self.last_ms or 0) - (self.first_ms or 0)
        ordered = sorted(self.sizes)
        return {
            "batches": batches,
            "records": self.records,
            "bytes": total,
            "batches_per_s": round(batches * 1000 / span_ms, 2) if span_ms > 0 and batches > 1 else None,
            "bytes_per_s": round(total * 1000 / span_ms, 1) if span_ms > 0 and batches > 1 else None,
            "records_per_batch": round(self.records / batches, 1) if batches else None,
            "batch_bytes": round(total / batches, 1) if batches else None,
            "record_bytes": round(total / self.records, 1) if self.records else None,
            **{name: _percentile(ordered, name) for name in SIZES},
            "compression": sorted(self.codecs),
        }


def _least(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _percentile(ordered: list[int], name: str) -> int | None:
    """The smallest size that is not exceeded by this share of the batches."""
    if not ordered:
        return None
    share = 100 if name == "max" else int(name[1:])
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-t",
    "--time-range",
    "range_",
    default="@-1h:end",
    metavar="FROM:TO",
    show_default=True,
    help="The records to read, as in 'consume -o': @-1d:@-1h, beginning:end, -1000.",
)
@click.option(
    "-n",
    "--batches",
    "limit",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Read at most this number of batches of a partition.",
)
@listing_options
def analyze(names: tuple[str, ...], range_: str, limit: int, regex: bool, cluster: Cluster, output: str) -> None:
    """Show batch and record sizes and rates of topics, from the batches of a time range.

    Sizes are those on disk: compressed, and of records the average with their share of the batch's header. Rates are
    over the time between the first and the last record. Batches of transaction markers are left out.
    """
    selected = select(names, lambda: [topic.name or "" for topic in list_topics(cluster)], regex=regex, kind="topic")
    leaders = {
        (topic.name or "", partition.partition_index): partition.leader_id
        for topic in describe_topics(cluster, selected)
        for partition in topic.partitions
    }
    samples, limited = _read(cluster, list(leaders), range_, limit)
    _show(selected, leaders, samples, output)
    if limited:
        names_of = ", ".join(f"{name}-{index}" for name, index in sorted(limited))
        note(f"only the first {limit} batches of {names_of} were read (-n)")
    if not any(sample.sizes for sample in samples.values()):
        note(f"there are no records in {range_}; -t sets the range")


def _read(
    cluster: Cluster, partitions: list[TopicPartition], range_: str, limit: int
) -> tuple[dict[TopicPartition, Sample], set[TopicPartition]]:
    """The batches of each partition, and the partitions of which some were left out."""
    first, last = parse_range(range_, "-t")
    starts = resolve_offset_specs(cluster, dict.fromkeys(partitions, first))
    ends = resolve_offset_specs(cluster, dict.fromkeys(partitions, last or OffsetSpec("end")))
    samples = {partition: Sample() for partition in partitions}
    limited: set[TopicPartition] = set()
    reader = Reader(cluster, starts, ends)
    for partition, batch in reader.batches():
        if partition in limited or batch.is_control or batch.base_offset >= ends[partition]:
            continue
        samples[partition].add(batch)
        if len(samples[partition].sizes) == limit and batch.next_offset < ends[partition]:
            limited.add(partition)
            reader.positions[partition].end_offset = 0
    return samples, limited


def _show(
    topics: list[str], leaders: dict[TopicPartition, int], samples: dict[TopicPartition, Sample], output: str
) -> None:
    summaries, details = [], []
    for name in topics:
        whole = Sample()
        for (topic, index), sample in sorted(samples.items()):
            if topic == name:
                whole.merge(sample)
                leader = leaders[topic, index]
                details.append({"topic": topic, "partition": index, "leader": leader, **sample.row()})
        count = sum(1 for topic, _ in samples if topic == name)
        summaries.append({"topic": name, "partitions": count, **whole.row()})
    if is_document(output):
        parts = {name: [row for row in details if row["topic"] == name] for name in topics}
        show([row | {"by_partition": parts[str(row["topic"])]} for row in summaries], output)
        return
    show_rows(summaries, output, columns=("topic", "batches", "records", "bytes", "batches_per_s"), title="Topics")
    click.echo()
    show_rows(summaries, output, columns=("topic", *SIZES, "record_bytes"), title="Bytes of a batch, of a record")
    columns = ("partition", "leader", "records", "batch_bytes", "batches_per_s")
    for name in topics:
        click.echo()
        show_rows(
            [row for row in details if row["topic"] == name], output, columns=columns, title=f"Partitions of {name}"
        )
