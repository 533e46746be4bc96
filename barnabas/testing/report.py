"""What the report of a failed test shows of its cluster: the last records of its topics, and its groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.testing.errors import BrokerError, RefusedError
from barnabas.testing.group import state_of
from barnabas.testing.records import record_of

if TYPE_CHECKING:
    from barnabas.testing.link import Link

MOST: Final = 5
"""Topics and groups that are shown."""
LAST: Final = 3
"""Records of a partition that are shown."""


def what_is_there(link: Link) -> str:
    """The last records of the topics, and the groups; "" if there are none, or the cluster is closed."""
    try:
        return "\n".join([*_topics(link), *_groups(link)])
    except (BrokerError, RefusedError):
        return ""  # the failure of the test is of more interest


def _topics(link: Link) -> Iterator[str]:
    topics = link.topics()
    for name in topics[:MOST]:
        partitions = link.perform("topic", {"topic": name})["partitions"]
        there = sum(one["high_watermark"] - one["start"] for one in partitions)
        yield f"{name}: {len(partitions)} partition{'s'[: len(partitions) > 1]}, {there} offsets"
        positions = {str(one["partition"]): max(one["start"], one["high_watermark"] - LAST) for one in partitions}
        records = link.perform("records", {"topic": name, "positions": positions})["records"]
        yield from (f"  {record_of(one)}" for one in records[-LAST * MOST :])
    if len(topics) > MOST:
        yield f"and {len(topics) - MOST} more topics"


def _groups(link: Link) -> Iterator[str]:
    groups = [one["group"] for one in link.perform("groups")["groups"]]
    for name in groups[:MOST]:
        yield f"Group {name}: {state_of(link.perform('group', {'group': name}))}"
    if len(groups) > MOST:
        yield f"and {len(groups) - MOST} more groups"
