"""After a sequence: what both brokers list of its names, and what they have on disk, compared; then it is deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compat.twin.batches import decoded_batches
from compat.twin.channel import Channel
from compat.twin.compare import Comparison, Difference
from compat.twin.nodes import SIDES, NodePair
from compat.twin.scope import scoped
from compat.twin.settling import ask

LISTS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("Metadata", 13, {"topics": None}),
    ("ListGroups", 5, {}),
    ("ListTransactions", 1, {}),
    ("ListConfigResources", 1, {}),
)


def after(pair: NodePair, control: dict[str, Channel], comparison: Comparison, prefix: str) -> list[Difference]:
    """The differences of what is listed and stored of the names with this prefix."""
    found: list[Difference] = []
    topics: dict[str, int] = {}

    def compared(api: str, version: int, request: dict[str, Any]) -> dict[str, dict[str, Any]]:
        for side in SIDES:
            control[side].send(api, version, request)
        answers = {side: scoped(control[side].read(), prefix) for side in SIDES}
        found.extend(comparison.differences(f"after: {api} v{version}", request, *answers.values()))
        return answers

    for api, version, request in LISTS:
        answers = compared(api, version, request)
        if api == "Metadata":
            topics = _topics(answers["kafka"])
        elif api == "ListTransactions":
            ids = [state["transactional_id"] for state in answers["kafka"].get("transaction_states", [])]
            if ids:
                compared("DescribeTransactions", 0, {"transactional_ids": ids})
    if topics:
        compared("DescribeProducers", 0, {"topics": _with_indexes(topics, "name", "partition_indexes")})
        resources = [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in topics]
        compared("DescribeConfigs", 4, {"resources": resources})
        found += _on_disk(pair, comparison, topics)
    _delete(control, prefix)
    return found


def _topics(metadata: dict[str, Any]) -> dict[str, int]:
    return {topic["name"]: len(topic["partitions"]) for topic in metadata.get("topics", []) if not topic["error_code"]}


def _with_indexes(topics: dict[str, int], name: str, partitions: str) -> list[dict[str, Any]]:
    return [{name: topic, partitions: list(range(count))} for topic, count in topics.items()]


def _on_disk(pair: NodePair, comparison: Comparison, topics: dict[str, int]) -> list[Difference]:
    found = []
    for topic, count in topics.items():
        for index in range(count):
            stored = [_stored(pair.log_dir(side) / f"{topic}-{index}") for side in SIDES]
            found += comparison.differences("after: disk", {}, *stored)
    return found


def _stored(folder: Path) -> dict[str, Any]:
    """The batches of each segment of a partition."""
    return {
        "segments": [
            {"file": path.name, "batches": decoded_batches(path.read_bytes())} for path in sorted(folder.glob("*.log"))
        ]
    }


def _delete(control: dict[str, Channel], prefix: str) -> None:
    for side in SIDES:
        topics = _topics(scoped(ask(control[side], "Metadata", 9, {"topics": None}), prefix))
        if topics:
            ask(control[side], "DeleteTopics", 5, {"topic_names": list(topics), "timeout_ms": 30000})
