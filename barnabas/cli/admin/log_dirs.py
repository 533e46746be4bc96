"""`barnabas log-dirs`: log directories and the space that topics and partitions take in them."""

from __future__ import annotations

import click

from barnabas.cli.options.parameters import listing_options
from barnabas.cli.options.patterns import select
from barnabas.client.admin.log_dirs import LogDir, describe_log_dirs
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.terminal.notes import note
from barnabas.terminal.tables import is_document, show_rows

Row = dict[str, object]
SIZES = ("bytes", "total_bytes", "usable_bytes")


@click.command("log-dirs")
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@click.option(
    "--by",
    type=click.Choice(["dir", "topic", "partition"]),
    help="A row for each of these.  [default: dir; with TOPIC: partition]",
)
@click.option(
    "--broker", "brokers", type=int, multiple=True, metavar="NODE", help="Only of this broker; may be repeated."
)
@click.option("-H", "--human", is_flag=True, help="Show sizes in a table as 1.5 MB.")
@listing_options
def log_dirs(
    names: tuple[str, ...],
    by: str | None,
    brokers: tuple[int, ...],
    human: bool,
    regex: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """Show the log directories of brokers with their sizes, and which are offline.

    \b
    barnabas log-dirs                        # by directory
    barnabas log-dirs --by topic -H          # by topic, in MB
    barnabas log-dirs orders                 # the partitions of a topic
    """
    by = by or ("partition" if names else "dir")
    topics = select(names, lambda: [topic.name or "" for topic in list_topics(cluster)], regex=regex, kind="topic")
    described = describe_log_dirs(cluster, topics if names else None, list(dict.fromkeys(brokers)) or None)
    rows = {"dir": _by_dir, "topic": _by_topic, "partition": _by_partition}[by](described)
    if human and not is_document(output):
        rows = [row | {key: _human(row[key]) for key in SIZES if key in row} for row in rows]
    columns = {
        "dir": ("broker", "dir", "partitions", "bytes", "state"),
        "topic": ("topic", "partitions", "bytes"),
        "partition": ("topic", "partition", "broker", "bytes", "lag"),
    }[by]
    show_rows(rows, output, columns=columns, empty="no partitions")
    if by != "dir":
        for log_dir in described:
            if log_dir.error is not None:
                note(f"broker {log_dir.broker}: {log_dir.path} is offline ({log_dir.error}), its sizes are missing")


def _by_dir(log_dirs: list[LogDir]) -> list[Row]:
    return [
        {
            "broker": log_dir.broker,
            "dir": log_dir.path,
            "partitions": len(log_dir.replicas),
            "bytes": sum(replica.size for replica in log_dir.replicas),
            "total_bytes": log_dir.total_bytes if log_dir.total_bytes >= 0 else None,
            "usable_bytes": log_dir.usable_bytes if log_dir.usable_bytes >= 0 else None,
            "state": "online" if log_dir.error is None else "offline",
            "error": log_dir.error,
        }
        for log_dir in log_dirs
    ]


def _by_topic(log_dirs: list[LogDir]) -> list[Row]:
    sizes: dict[str, list[int]] = {}
    for replica in (replica for log_dir in log_dirs for replica in log_dir.replicas):
        sizes.setdefault(replica.topic, []).append(replica.size)
    return [{"topic": name, "partitions": len(each), "bytes": sum(each)} for name, each in sorted(sizes.items())]


def _by_partition(log_dirs: list[LogDir]) -> list[Row]:
    rows: list[Row] = [
        {
            "topic": replica.topic,
            "partition": replica.partition,
            "broker": log_dir.broker,
            "bytes": replica.size,
            "lag": replica.offset_lag,
            "future": replica.is_future,
            "dir": log_dir.path,
        }
        for log_dir in log_dirs
        for replica in log_dir.replicas
    ]
    return sorted(rows, key=lambda row: (str(row["topic"]), int(str(row["partition"])), int(str(row["broker"]))))


def _human(size: object) -> str | None:
    if not isinstance(size, int):
        return None
    value = float(size)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError
