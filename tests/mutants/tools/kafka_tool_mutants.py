"""Planted bugs of Kafka's tools under their own names."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "tests/cli/kafka_tools/test_transcripts.py::test_barnabas_prints_what_kafkas_tools_print"

KAFKA_TOOLS = (
    Mutant(
        "kafka-consumer-groups-resets-without-execute",
        "barnabas/cli/kafka_tools/group/consumer_groups.py",
        '            if options.has("execute") and plan[group]:\n',
        "            if plan[group]:\n",
        _TEST,
    ),
    Mutant(
        "kafka-consumer-groups-resets-offsets-beyond-the-log",
        "barnabas/cli/kafka_tools/group/offset_resets.py",
        "max(starts[partition], min(offset, ends[partition]))",
        "offset",
        _TEST,
    ),
    Mutant(
        "unknown-topic-of-a-tool-is-asked-for-until-the-timeout",
        "barnabas/client/errors.py",
        " and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION",
        "",
        _TEST,
    ),
    Mutant(
        "kafka-console-consumer-commits-nothing",
        "barnabas/cli/kafka_tools/data/console_consumer.py",
        "                consumer.processed(partition, record.offset + 1)\n",
        "",
        _TEST,
    ),
)
