"""`barnabas topic trim`: delete the oldest records of partitions (DeleteRecords, KIP-107)."""

from __future__ import annotations

from typing import NamedTuple

import click

from barnabas.cli.options.offset_spec import parse_offset_spec
from barnabas.cli.options.parameters import cluster_options, output_option, yes_option
from barnabas.cli.options.partitions import named_partitions, partition_count, read_offsets
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.client.admin.topics import delete_records
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, raise_first
from barnabas.client.offsets import TopicPartition, end_offsets, start_offsets
from barnabas.client.positions import resolve_offset_specs
from barnabas.terminal.notes import note
from barnabas.terminal.plural import plural
from barnabas.terminal.tables import show_rows


class Trim(NamedTuple):
    """A partition's offsets before and after; `end` is the offset after its last record."""

    topic: str
    partition: int
    before: int
    after: int
    end: int

    @property
    def deleted(self) -> int:
        """The number of offsets that are deleted."""
        return self.after - self.before


@click.command()
@click.argument("names", nargs=-1, metavar="[TOPIC[:PARTITION,...]]...")
@click.option("--to", metavar="WHERE", help="The new first record: an offset, @TIME, end, or -N to keep the last N.")
@click.option(
    "--from-file", "path", type=click.Path(exists=True, dir_okay=False, allow_dash=True), help="Offsets of partitions."
)
@click.option("--dry-run", is_flag=True, help="Show the records that would be deleted, without deleting them.")
@yes_option
@cluster_options
@output_option
def trim(
    names: tuple[str, ...], to: str | None, path: str | None, dry_run: bool, yes: bool, cluster: Cluster, output: str
) -> None:
    """Delete the records of partitions before a position.

    \b
    barnabas topic trim orders --to @-7d         # records older than a week
    barnabas topic trim orders:0,2 --to 1500     # before offset 1500 in two partitions
    barnabas topic trim orders --to end -y       # everything, without asking

    It asks first; -y does not, and is needed without a terminal.

    FILE has lines TOPIC,PARTITION,OFFSET, or the JSON of kafka-delete-records.sh; offset -1 is the end.
    """
    if (path is None) == (not names) or (path is None) == (to is None):
        raise click.UsageError("name topics with --to WHERE, or a file with --from-file")
    offsets = _from_file(cluster, path) if path is not None else _positions(cluster, names, to or "")
    trims = _trims(cluster, offsets)
    total = sum(trim.deleted for trim in trims)
    if total and not dry_run:
        _confirm(trims, total, yes=yes)
        trims = _delete(cluster, trims)
    rows = [trim._asdict() | {"deleted": trim.deleted} for trim in trims]
    show_rows(rows, output, columns=("topic", "partition", "before", "after", "deleted"))
    if dry_run:
        note(f"dry run: {total} {plural('offset', total)} would be deleted, nothing was")


def _positions(cluster: Cluster, names: tuple[str, ...], to: str) -> dict[TopicPartition, int]:
    """The offset of `to` in each partition; an offset that is outside a partition stays as it is."""
    spec = parse_offset_spec(to, "--to")
    partitions = named_partitions(cluster, names, "TOPIC")
    if spec.kind == "offset":
        return dict.fromkeys(partitions, spec.value)
    return resolve_offset_specs(cluster, dict.fromkeys(partitions, spec))


def _from_file(cluster: Cluster, path: str) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for line in read_offsets(path, "--from-file"):
        if line.group is not None or line.offset < -1:
            raise click.BadParameter(
                f"{path}: a line must be TOPIC,PARTITION,OFFSET with an offset from -1 (the end)",
                param_hint="--from-file",
            )
        partition_count(cluster, line.topic, (line.partition,))
        offsets[line.topic, line.partition] = line.offset
    ends = end_offsets(cluster, [partition for partition, offset in offsets.items() if offset < 0])
    return offsets | ends


def _trims(cluster: Cluster, offsets: dict[TopicPartition, int]) -> list[Trim]:
    """What is deleted in each partition. An offset after the end is refused: it is a mistake that would delete all."""
    partitions = list(offsets)
    starts, ends = start_offsets(cluster, partitions), end_offsets(cluster, partitions)
    for (name, index), offset in offsets.items():
        if offset > ends[name, index]:
            raise ClientError(
                f"{name}-{index} ends at offset {ends[name, index]}, so it cannot be trimmed to {offset}; "
                "'--to end' deletes all its records"
            )
    return [
        Trim(name, index, starts[name, index], max(offset, starts[name, index]), ends[name, index])
        for (name, index), offset in sorted(offsets.items())
    ]


def _confirm(trims: list[Trim], total: int, *, yes: bool) -> None:
    where = [f"{trim.topic}-{trim.partition}" for trim in trims if trim.deleted]
    what = f"{total} {plural('offset', total)} of {', '.join(where)}"
    ask_or_refuse(f"Delete {what}?", f"this deletes {what}", yes=yes)


def _delete(cluster: Cluster, trims: list[Trim]) -> list[Trim]:
    """The same with the start offsets that the broker has answered."""
    outcome = delete_records(cluster, {(trim.topic, trim.partition): trim.after for trim in trims if trim.deleted})
    raise_first(outcome.values())
    starts = {which: start for which, start in outcome.items() if isinstance(start, int)}
    return [trim._replace(after=starts.get((trim.topic, trim.partition), trim.after)) for trim in trims]
