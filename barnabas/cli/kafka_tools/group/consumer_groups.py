"""kafka-consumer-groups: list, describe and delete consumer groups, reset and delete their offsets."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.cli.kafka_tools.arguments import BadArgument, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import Failed, chosen, connect, padded
from barnabas.cli.kafka_tools.errors import exception_of, text_of
from barnabas.cli.kafka_tools.failure import sentence
from barnabas.cli.kafka_tools.group import offset_resets
from barnabas.cli.kafka_tools.group.consumer_group_tables import describe
from barnabas.client.admin.topics import partition_counts
from barnabas.client.cluster import Cluster
from barnabas.client.errors import refusal
from barnabas.client.groups.consumer_groups import commit_offsets, committed, delete_group, delete_offsets, list_groups
from barnabas.client.groups.views import consumer_group_for_tools
from barnabas.client.offsets import TopicPartition, end_offsets
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import ListedGroup

PURPOSE = (
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset "
    "consumer group offsets."
)
ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
STATES = ("Stable", "Empty", "Assigning", "PreparingRebalance", "Dead", "Reconciling", "CompletingRebalance")
TYPES = ("Consumer", "Classic")

PARSER = Parser(
    "kafka-consumer-groups",
    PURPOSE,
    [
        Option("list", "List the groups."),
        Option("describe", "Show groups with their offsets and lag, members or state."),
        Option("delete", "Delete groups with their offsets."),
        Option("validate-regex", "Check a regular expression of the consumer protocol.", "REGEX"),
        Option("all-groups", "All consumer groups."),
        Option("topic", "The topic, or topic:0,1 for partitions; may be repeated.", "TOPIC"),
        Option("all-topics", "All topics of which the group has committed offsets."),
        Option("offsets", "With --describe: offsets and lag, which is the default.", needs=("describe",)),
        Option(
            "type",
            "With --list: also the types, or only groups of these: classic, consumer.",
            "TYPES",
            is_optional=True,
            needs=("list",),
        ),
        *offset_resets.OPTIONS,
        Option("export", "With --reset-offsets: print the new offsets as CSV."),
        Option("from-file", "To the offsets of a CSV file, in the form of --export.", "FILE"),
        Option("to-offset", "To an offset.", "OFFSET", "long"),
        Option("shift-by", "Forward, or back with a negative number.", "COUNT", "long"),
        Option("by-duration", "To the first record after a time ago.", "PnDTnHnMnS"),
        Option("to-current", "To the committed offset."),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PURPOSE)
    try:
        options = PARSER.parse(arguments)
    except BadArgument as error:
        return _failed(str(error))
    _check(options)
    if options.has("validate-regex"):
        return _validate(options.get("validate-regex"))
    _one_action(options)
    with connect(options, timeout_s=options.get("timeout") / 1000) as cluster:
        try:
            _run(cluster, options)
        except Usage:
            raise
        except ValueError as error:
            # Kafka reports what is wrong with an argument after its options, and other errors on stdout.
            if str(error).startswith("java."):
                return _failed(str(error))
            raise Usage(str(error)) from None
        except Exception as error:
            text = str(error) if isinstance(error, Failed) else sentence(error)
            if text is None:
                raise
            return _failed(text)
    return 0


def _failed(text: str) -> int:
    print(f"\nError: Executing consumer group command failed due to {text}")
    return 0


def _run(cluster: Cluster, options: Options) -> None:
    if options.has("list"):
        _list(cluster, options)
    elif options.has("describe"):
        describe(cluster, options, _groups(cluster, options))
    elif options.has("delete"):
        _delete(cluster, _groups(cluster, options))
    elif options.has("reset-offsets"):
        _reset(cluster, options)
    else:
        _delete_offsets(cluster, options)


# --- options


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    has_group = options.has("group", "all-groups")
    for action in ("describe", "delete"):
        if options.has(action) and not has_group:
            raise Usage(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if options.has("describe"):
        offset_resets.check_describe(options)
    if options.has("delete") and options.has("topic"):
        raise Usage("The consumer does not support topic-specific offset deletion from a consumer group.")
    offset_resets.check_delete_offsets(options)
    if options.has("reset-offsets"):
        offset_resets.only_one_way(options)
        offset_resets.missing_execute_warning(options)
        if not has_group:
            raise Usage("Option [reset-offsets] takes one of these options: [group], [all-groups]")
        offset_resets.one_scenario(options, SCENARIOS)
    options.refuse_with("group", (name for name in ("list",) if options.has("list")))
    options.refuse_with("topic", ("list", "describe", "delete"))


def _one_action(options: Options) -> None:
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise Usage(f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}")


def _validate(regex: str) -> int:
    from barnabas.coord.re2_patterns import compile_re2

    try:
        compile_re2(regex)
        print(f"The regular expression `{regex}` is valid.")
    except ValueError as error:
        print(f"The regular expression `{regex}` is invalid: {error}.")
    return 0


def _groups(cluster: Cluster, options: Options) -> list[str]:
    if not options.has("all-groups"):
        return list(dict.fromkeys(options.all("group")))
    return [group.group_id for group in list_groups(cluster, types=TYPES) if group.protocol_type in {"", "consumer"}]


# --- actions


def _list(cluster: Cluster, options: Options) -> None:
    states = chosen(options.get("state"), STATES, "state", "states") if options.has("state") else []
    types = chosen(options.get("type"), TYPES, "types", "types") if options.has("type") else []
    groups = [
        listed for listed in list_groups(cluster, states, types or TYPES) if listed.protocol_type in {"", "consumer"}
    ]
    if not options.has("state", "type"):
        for listed in groups:
            print(listed.group_id)
        return
    widths = [max(15, *(len(listed.group_id) for listed in groups), 0) + 10]
    widths += [20] * (options.has("type") + options.has("state"))
    for group, kind, state in [("GROUP", "TYPE", "STATE"), *_listed(groups)]:
        cells = [group, *([kind] if options.has("type") else []), *([state] if options.has("state") else [])]
        print(padded(cells, widths))


def _listed(listed: Sequence[object]) -> list[tuple[str, str, str]]:
    groups = [group for group in listed if isinstance(group, ListedGroup)]
    return [(group.group_id, group.group_type.capitalize(), group.group_state) for group in groups]


def _delete(cluster: Cluster, groups: Sequence[str]) -> None:
    outcome = {group: refusal(delete_group, cluster, group) for group in groups}
    problems = {group: None if error is None else exception_of(error) for group, error in outcome.items()}
    offset_resets.print_deletions("consumer groups", problems)


def _delete_offsets(cluster: Cluster, options: Options) -> None:
    group, topics = options.only("group"), options.all("topic")
    outcome: dict[TopicPartition, KafkaError | None] = {}
    partitions = [partition for text in topics if ":" in text for partition in offset_resets.listed_partitions(text)]
    for name, count in partition_counts(cluster, [text for text in topics if ":" not in text]).items():
        if isinstance(count, int):
            partitions += [(name, index) for index in range(count)]
        else:
            outcome[name, -1] = count
    head = f"Request succeeded for deleting offsets from group {group}."
    try:
        results = delete_offsets(cluster, group, partitions) if partitions else {}
        if any(results.values()):
            head = "\nError: Encountered some partition-level error, see the follow-up details."
    except KafkaError as error:
        results = dict.fromkeys(partitions, error)
        head = f"\nError: {text_of(error)}"
    outcome |= results
    print(head)
    widths = (max(15, *(len(name) for name, _ in outcome), 0), 10, 15)
    lines = [("TOPIC", "PARTITION", "STATUS")]
    for (name, index), result in sorted(outcome.items(), key=lambda item: f"{item[0][0]}{item[0][1]}"):
        status = "Successful" if result is None else f"Error: {exception_of(result)}"
        lines.append((name, "-" if index < 0 else str(index), status))
    print("".join(f"\n{padded(line, widths)}" for line in lines))


# --- offsets


def _reset(cluster: Cluster, options: Options) -> None:
    plan: offset_resets.Plan = {}
    for group in _groups(cluster, options):
        try:
            state = consumer_group_for_tools(cluster, group)[0].state
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            state = "Dead"
        if state in {"Empty", "Dead"}:
            plan[group] = _new_offsets(cluster, options, group)
            if options.has("execute") and plan[group]:
                commit_offsets(cluster, group, plan[group])
        else:
            what = f"Assignments can only be reset if the group '{group}' is inactive"
            print(f"\nError: {what}, but the current state is {state}.")
            plan[group] = {}
    if options.has("export"):
        offset_resets.print_csv(plan, with_groups=len(options.all("group")) != 1)
    else:
        offset_resets.print_plan(plan)


def _new_offsets(cluster: Cluster, options: Options, group: str) -> offset_resets.Offsets:
    partitions = _partitions(cluster, options, group)
    offset_resets.check_existing(cluster, partitions)
    if options.has("to-offset"):
        return offset_resets.in_range(cluster, dict.fromkeys(partitions, options.only("to-offset")))
    if options.has("to-earliest", "to-latest"):
        return offset_resets.at_ends(cluster, options, partitions)
    if options.has("shift-by"):
        return offset_resets.in_range(cluster, _shifted(cluster, options, group, partitions))
    if options.has("to-datetime"):
        timestamp = offset_resets.parse_datetime(options.only("to-datetime"))
        return offset_resets.at_time(cluster, partitions, timestamp)
    if options.has("by-duration"):
        ago = offset_resets.parse_duration(options.only("by-duration"))
        return offset_resets.at_time(cluster, partitions, offset_resets.before_now_ms(ago))
    if options.has("from-file"):
        return _from_file(cluster, options, group)
    if options.has("to-current"):
        return _current(cluster, group, partitions)
    scenarios = ", ".join(f"[{name}]" for name in sorted(SCENARIOS))
    raise Usage(f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]")


def _partitions(cluster: Cluster, options: Options, group: str) -> list[TopicPartition]:
    if options.has("all-topics"):
        return list(committed(cluster, group))
    if options.has("topic"):
        return offset_resets.partitions_of(cluster, options.all("topic"))
    if not options.has("from-file"):
        raise Usage("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def _shifted(
    cluster: Cluster, options: Options, group: str, partitions: Sequence[TopicPartition]
) -> offset_resets.Offsets:
    current = committed(cluster, group)
    for topic, index in partitions:
        if (topic, index) not in current:
            where = f"{topic}-{index}"
            raise ValueError(f"Cannot shift offset for partition {where} since there is no current committed offset")
    return {partition: current[partition].offset + options.only("shift-by") for partition in partitions}


def _from_file(cluster: Cluster, options: Options, group: str) -> offset_resets.Offsets:
    plan = offset_resets.read_plan(options.only("from-file"), options.all("group"))
    if group not in plan:
        print(f"\nError: No reset plan for group {group} found.")
        return {}
    offset_resets.check_existing(cluster, list(plan[group]))
    return offset_resets.in_range(cluster, plan[group])


def _current(cluster: Cluster, group: str, partitions: Sequence[TopicPartition]) -> offset_resets.Offsets:
    current = committed(cluster, group)
    without = [partition for partition in partitions if partition not in current]
    ends = end_offsets(cluster, without) if without else {}
    return {partition: ends[partition] if partition in ends else current[partition].offset for partition in partitions}
