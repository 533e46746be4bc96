"""What the tools of consumer and share groups share: options, the scenarios of `--reset-offsets`, tables."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time_ns

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Usage
from barnabas.cli.kafka_tools.common import padded
from barnabas.client.admin.topics import partition_counts
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition, end_offsets, list_offsets, start_offsets
from barnabas.wire.errors import ErrorCode, KafkaError

Offsets = dict["TopicPartition", int]
Plan = dict[str, Offsets]

DURATION = re.compile(
    r"([+-])?P(?:([+-]?\d+)D)?(?:T(?=[+\-\d])(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
UNKNOWN_OFFSET = -1
OPTIONS = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("delete-offsets", "Delete the offsets of topics."),
    Option("group", "The group; may be repeated.", "GROUP"),
    Option("timeout", "Time for the requests, in milliseconds.", "MS", "long", default=5000),
    Option("members", "With --describe: the members.", needs=("describe",)),
    Option("verbose", "With --describe: more columns.", needs=("describe",)),
    Option(
        "state",
        "With --describe: the state. With --list: also the states, or only groups in these.",
        "STATES",
        is_optional=True,
        needs=("describe", "list"),
    ),
    Option("reset-offsets", "Change the offsets of a group without members."),
    Option("dry-run", "Only show the new offsets."),
    Option("execute", "Change the offsets."),
    Option("to-datetime", "To the first record at or after a time.", "YYYY-MM-DDThh:mm:ss.sss"),
    Option("to-earliest", "To the earliest offset."),
    Option("to-latest", "To the end of the partition."),
)
"""The options that the tools of consumer and share groups have in common."""


def missing_execute_warning(options: Options) -> None:
    """Say on stderr that nothing is changed without `--execute`."""
    if not options.has("dry-run", "execute"):
        print(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will "
            "require either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if "
            "you are scripting this command and want to keep the current default behavior without prompting.",
            file=sys.stderr,
        )


# --- options


def check_describe(options: Options) -> None:
    """A usage error if `--describe` shows several things, or has a value of `--state`."""
    if sum(options.has(name) for name in ("members", "offsets", "state")) > 1:
        raise Usage("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if options.get("state"):
        raise Usage("Option [describe] does not take a value for [state]")


def check_delete_offsets(options: Options) -> None:
    """A usage error if `--delete-offsets` has no group or no topic."""
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        raise Usage("Option [delete-offsets] takes the following options: [group], [topic]")


# --- partitions


def partitions_of(cluster: Cluster, topics: Iterable[str]) -> list[TopicPartition]:
    """The partitions of `topic` and `topic:0,1` arguments; an unknown topic is a KafkaError."""
    texts = list(topics)
    partitions = [partition for text in texts if ":" in text for partition in listed_partitions(text)]
    for name, count in partition_counts(cluster, [text for text in texts if ":" not in text]).items():
        if not isinstance(count, int):
            raise count
        partitions += [(name, index) for index in range(count)]
    return partitions


def listed_partitions(text: str) -> list[TopicPartition]:
    """`topic:0,1` as partitions. ValueError with Kafka's message."""
    topic, *rest = text.split(":")
    if len(rest) != 1 or not rest[0]:
        raise ValueError(f"Invalid topic arg '{text}', expected topic name and partitions")
    partitions = []
    for part in rest[0].split(","):
        try:
            partitions.append((topic, int(part)))
        except ValueError:
            raise ValueError(f"Invalid partition '{part}' specified in topic arg '{text}''") from None
    return partitions


def check_existing(cluster: Cluster, partitions: Sequence[TopicPartition]) -> None:
    """KafkaError with Kafka's message for partitions that do not exist."""
    counts = partition_counts(cluster, sorted({name for name, _ in partitions}))
    missing = []
    for name, index in partitions:
        count = counts[name]
        if not isinstance(count, int):
            raise count
        if not 0 <= index < count:
            missing.append(f"{name}-{index}")
    if missing:
        text = f'The partitions "{",".join(missing)}" do not exist'
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)


# --- scenarios


def in_range(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> Offsets:
    """The offsets, moved into the range of each partition's log."""
    starts, ends = start_offsets(cluster, list(offsets)), end_offsets(cluster, list(offsets))
    return {partition: max(starts[partition], min(offset, ends[partition])) for partition, offset in offsets.items()}


def at_ends(cluster: Cluster, options: Options, partitions: Sequence[TopicPartition]) -> Offsets:
    """The start of each partition with `--to-earliest`, else its end."""
    of = start_offsets if options.has("to-earliest") else end_offsets
    offsets = of(cluster, list(partitions))
    return {partition: offsets[partition] for partition in partitions}


def at_time(cluster: Cluster, partitions: Sequence[TopicPartition], timestamp_ms: int) -> Offsets:
    """The first offset at or after a time; the end where there is none, which is printed."""
    offsets = list_offsets(cluster, dict.fromkeys(partitions, timestamp_ms))
    without = [partition for partition in partitions if offsets[partition] == UNKNOWN_OFFSET]
    for topic, index in without:
        print(f"\nWarn: Partition {index} from topic {topic} is empty. Falling back to latest known offset.")
    offsets |= end_offsets(cluster, without) if without else {}
    return {partition: offsets[partition] for partition in partitions}


def parse_datetime(text: str) -> int:
    """`YYYY-MM-DDThh:mm:ss.sss`, in UTC unless it has a zone, as milliseconds. ValueError with Kafka's message."""
    if "T" not in text:
        problem = "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        raise ValueError(f"java.text.ParseException: {problem}")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'java.text.ParseException: Unparseable date: "{text}"') from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_duration(text: str) -> timedelta:
    """An ISO-8601 duration as Java's Duration.parse takes it. ValueError with Java's message."""
    match = DURATION.fullmatch(text)
    if match is None or text.upper().rstrip("T")[-1:] == "P":
        raise ValueError("Text cannot be parsed to a Duration")
    sign, days, hours, minutes, seconds = match.groups()
    length = timedelta(
        days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0)
    )
    return -length if sign == "-" else length


def before_now_ms(duration: timedelta) -> int:
    """The time that is `duration` ago, in milliseconds."""
    return time_ns() // 1_000_000 - round(duration.total_seconds() * 1000)


# --- files and tables


def read_plan(path: str, groups: Sequence[str]) -> Plan:
    """A CSV file of `topic,partition,offset` for a single group, or of `group,topic,partition,offset`."""
    rows = [row for row in csv.reader(Path(path).read_text(encoding="utf-8").splitlines()) if row]
    plan: Plan = {}
    for row in rows:
        if len(rows[0]) == 3 and len(groups) == 1:
            row = [groups[0], *row]
        if len(row) != 4 or not (row[2].strip().isdigit() and row[3].strip().isdigit()):
            form = "topic,partition,offset (one group) or group,topic,partition,offset"
            raise ValueError(f"{path}: a line has the form {form}, not {','.join(row)}")
        plan.setdefault(row[0], {})[row[1], int(row[2])] = int(row[3])
    return plan


def print_csv(plan: Plan, *, with_groups: bool) -> None:
    """Print a plan in the form of `read_plan`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for group, offsets in plan.items():
        for (topic, index), offset in offsets.items():
            writer.writerow([group, topic, index, offset] if with_groups else [topic, index, offset])
    print(out.getvalue())


def print_plan(plan: Plan) -> None:
    """The table of new offsets."""
    names = [name for offsets in plan.values() for name, _ in offsets]
    widths = (max(15, *map(len, plan), 0), max(15, *map(len, names), 0), 10)
    lines = [padded(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), widths)] if plan else []
    lines += [
        padded((group, name, index, offset), widths)
        for group, offsets in plan.items()
        for (name, index), offset in offsets.items()
    ]
    print("".join(f"\n{line}" for line in lines))


def one_scenario(options: Options, names: Sequence[str]) -> None:
    """A usage error if two scenarios were chosen."""
    for name in names:
        options.refuse_with(name, (other for other in names if other != name))


def only_one_way(options: Options) -> None:
    """A usage error if both `--execute` and `--dry-run` were given."""
    if options.has("dry-run") and options.has("execute"):
        raise Usage("Option [reset-offsets] only accepts one of [execute] and [dry-run]")


def print_deletions(what: str, problems: Mapping[str, str | None]) -> None:
    """Say which groups were deleted; the others have a problem."""
    deleted = ", ".join(f"'{group}'" for group, problem in problems.items() if problem is None)
    if not any(problems.values()):
        print(f"Deletion of requested {what} ({deleted}) was successful.")
        return
    print(f"\nError: Deletion of some {what} failed:")
    for group, problem in problems.items():
        if problem is not None:
            print(f"* Group '{group}' could not be deleted due to: {problem}")
    if deleted:
        print(f"\nThese {what} were deleted successfully: {deleted}")
