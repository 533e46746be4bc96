"""The changes of one partition: the cases of Kafka's PartitionChangeBuilderTest, written as tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from barnabas.coord.cluster.partitions.partition_change import RECOVERED, RECOVERING, Election, PartitionChange
from barnabas.coord.cluster.topic_image import NO_LEADER, UNASSIGNED_DIRECTORY, PartitionImage
from barnabas.wire.messages.records.metadata_records import PartitionChangeRecord
from tests.support.cases import for_each

TOPIC = bytes(15) + b"\x07"
LATEST = 33


def directory(broker: int) -> bytes:
    return bytes([broker]) * 16


def partition(
    replicas: Sequence[int] = (1, 2, 3),
    *,
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    elr: Sequence[int] = (),
    last_known: Sequence[int] = (),
    removing: Sequence[int] = (),
    adding: Sequence[int] = (),
    recovery: int = RECOVERED,
) -> PartitionImage:
    isr = replicas if isr is None else isr
    return PartitionImage(
        replicas=tuple(replicas),
        directories=tuple(map(directory, replicas)),
        isr=tuple(isr),
        removing_replicas=tuple(removing),
        adding_replicas=tuple(adding),
        elr=tuple(elr),
        last_known_elr=tuple(last_known),
        leader=isr[0] if leader is None else leader,
        leader_recovery_state=recovery,
        leader_epoch=5,
        partition_epoch=9,
    )


def change(
    old: PartitionImage,
    *,
    live: Collection[int] = (1, 2, 3, 4, 5, 6),
    min_isr: int = 1,
    elr: bool = True,
    metadata_version: int = LATEST,
    **targets: Any,
) -> PartitionChangeRecord | None:
    """The record of a change with these targets."""
    builder = PartitionChange(
        TOPIC,
        0,
        old,
        is_acceptable=lambda replica: replica in live,
        default_directory=lambda broker: directory(broker) if broker < 6 else UNASSIGNED_DIRECTORY,
        min_isr=min_isr,
        elr_enabled=elr,
        metadata_version=metadata_version,
    )
    for name, value in targets.items():
        setattr(builder, name, value)
    return builder.build()


def record(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **fields)


PREFERRED, UNCLEAN = Election.PREFERRED, Election.UNCLEAN


@for_each(
    ("old", "given", "expected"),
    [
        # Elections from the ISR
        pytest.param(partition(), {}, None, id="nothing changes"),
        pytest.param(partition(leader=2), {}, None, id="a valid leader stays"),
        pytest.param(partition(leader=2), {"election": PREFERRED}, record(leader=1), id="the preferred leader"),
        pytest.param(
            partition(isr=[2, 3], leader=3), {"election": PREFERRED}, None, id="the preferred one is not in the ISR"
        ),
        pytest.param(partition(), {"live": {2, 3}}, record(leader=2), id="the next replica leads"),
        pytest.param(
            partition(), {"live": {3}, "election": PREFERRED}, record(leader=3), id="a preferred election finds another"
        ),
        pytest.param(partition(), {"live": ()}, record(leader=NO_LEADER, last_known_elr=[1]), id="nobody is live"),
        pytest.param(partition(leader=NO_LEADER), {"live": ()}, None, id="still nobody"),
        # Smaller and larger ISRs
        pytest.param(partition(), {"isr": [1, 2]}, record(isr=[1, 2]), id="a smaller ISR keeps the leader epoch"),
        pytest.param(partition(), {"isr": [2, 3]}, record(isr=[2, 3], leader=2), id="the leader leaves the ISR"),
        pytest.param(partition(isr=[1]), {"isr": [1, 3]}, record(isr=[1, 3]), id="a larger ISR"),
        pytest.param(
            partition(),
            {"isr": [1, 2], "metadata_version": 11},
            record(isr=[1, 2], leader=1),
            id="before 3.6 a smaller ISR needs a new leader epoch",
        ),
        # Without ELR the ISR keeps its last members
        pytest.param(
            partition(isr=[1]), {"isr": [], "live": {2}, "elr": False}, record(leader=NO_LEADER), id="no ELR, no leader"
        ),
        pytest.param(
            partition(isr=[1]),
            {"isr": [], "live": {2, 3}, "elr": False, "election": UNCLEAN},
            record(leader=2, isr=[2], leader_recovery_state=RECOVERING),
            id="unclean",
        ),
        pytest.param(
            partition(isr=[1], recovery=RECOVERING, leader=NO_LEADER),
            {"live": {2}, "elr": False, "election": UNCLEAN},
            record(leader=2, isr=[2]),
            id="unclean again, while it recovers",
        ),
        pytest.param(
            partition(recovery=RECOVERING, isr=[1]),
            {"recovery_state": RECOVERED},
            record(leader_recovery_state=RECOVERED),
            id="it has recovered",
        ),
        # ELR (KIP-966)
        pytest.param(
            partition(),
            {"isr": [1], "min_isr": 2},
            record(isr=[1], eligible_leader_replicas=[2, 3]),
            id="members that leave a small ISR become eligible",
        ),
        pytest.param(partition(), {"isr": [1, 2], "min_isr": 2}, record(isr=[1, 2]), id="a large ISR needs no ELR"),
        pytest.param(
            partition(isr=[1], elr=[2]),
            {"isr": [1, 3], "min_isr": 2},
            record(isr=[1, 3], eligible_leader_replicas=[]),
            id="a large ISR ends the ELR",
        ),
        pytest.param(
            partition(isr=[1], elr=[2]),
            {"isr": [1, 2], "min_isr": 3},
            record(isr=[1, 2], eligible_leader_replicas=[]),
            id="ISR and ELR are disjoint",
        ),
        pytest.param(
            partition(isr=[1], elr=[2]),
            {"isr": [], "live": (), "min_isr": 2},
            record(isr=[], leader=NO_LEADER, eligible_leader_replicas=[1, 2], last_known_elr=[1]),
            id="an empty ISR, and the last leader is remembered",
        ),
        pytest.param(
            partition(isr=[], elr=[1, 2], leader=NO_LEADER, last_known=[1]),
            {"live": {2}, "min_isr": 2},
            record(isr=[2], leader=2, eligible_leader_replicas=[1], last_known_elr=[]),
            id="an eligible replica leads",
        ),
        pytest.param(
            partition(isr=[1], elr=[2]),
            {"isr": [], "live": {2, 3}, "min_isr": 2},
            record(isr=[2], leader=2, eligible_leader_replicas=[1]),
            id="an eligible replica follows the last member of the ISR",
        ),
        pytest.param(
            partition(isr=[1], elr=[2]),
            {"unclean_shutdown": (2,), "min_isr": 2},
            record(eligible_leader_replicas=[]),
            id="an unclean shutdown ends the eligibility",
        ),
        pytest.param(
            partition(isr=[1]),
            {"isr": [], "unclean_shutdown": (1,), "live": {2, 3}, "min_isr": 2},
            record(isr=[], leader=NO_LEADER, last_known_elr=[1]),
            id="the last member lost its log",
        ),
        pytest.param(
            partition(isr=[], elr=[], leader=NO_LEADER, last_known=[1]),
            {"live": {2, 3}, "min_isr": 2},
            None,
            id="others wait for the last known leader",
        ),
        pytest.param(
            partition(isr=[], elr=[], leader=NO_LEADER, last_known=[1]),
            {"live": {1}, "min_isr": 2},
            record(isr=[1], leader=1, last_known_elr=[], leader_recovery_state=RECOVERING),
            id="the last known leader leads, and recovers",
        ),
        pytest.param(
            partition(isr=[], elr=[], leader=NO_LEADER, last_known=[1]),
            {"live": {3}, "min_isr": 2, "election": UNCLEAN},
            record(isr=[3], leader=3, last_known_elr=[], leader_recovery_state=RECOVERING),
            id="an unclean election, without the last known leader",
        ),
        pytest.param(
            partition(isr=[], elr=[2], leader=NO_LEADER, last_known=[1]),
            {"live": {1, 3}, "min_isr": 2},
            None,
            id="the last known leader waits for the eligible ones",
        ),
        pytest.param(
            partition(isr=[1], elr=[2]), {"elr": False}, record(eligible_leader_replicas=[]), id="ELR is disabled"
        ),
        # Reassignment (KIP-455)
        pytest.param(
            partition(),
            {"replicas": [3, 2, 1]},
            record(replicas=[3, 2, 1], directories=[directory(3), directory(2), directory(1)]),
            id="another order",
        ),
        pytest.param(
            partition(),
            {"replicas": [1, 2, 4, 3], "adding": [4], "removing": [3]},
            record(
                replicas=[1, 2, 4, 3],
                adding_replicas=[4],
                removing_replicas=[3],
                directories=[directory(1), directory(2), directory(4), directory(3)],
            ),
            id="a reassignment begins",
        ),
        pytest.param(
            partition([1, 2, 4, 3], isr=[1, 2, 3], adding=[4], removing=[3]),
            {"isr": [1, 2, 3, 4]},
            record(
                leader=1,
                replicas=[1, 2, 4],
                isr=[1, 2, 4],
                adding_replicas=[],
                removing_replicas=[],
                directories=[directory(1), directory(2), directory(4)],
            ),
            id="it ends with a new leader epoch",
        ),
        pytest.param(
            partition([4, 5, 1, 2], isr=[1, 2, 4], adding=[4, 5], removing=[1, 2], leader=1),
            {"isr": [1, 2, 4, 5]},
            record(
                leader=4,
                replicas=[4, 5],
                isr=[4, 5],
                adding_replicas=[],
                removing_replicas=[],
                directories=[directory(4), directory(5)],
            ),
            id="it ends with a new leader",
        ),
        pytest.param(
            partition([1, 2, 3], isr=[3], removing=[3], leader=3), {}, None, id="no replica that stays is in sync"
        ),
        pytest.param(
            partition(),
            {"replicas": [1, 2, 3], "removing": [3]},
            record(
                leader=1,
                replicas=[1, 2],
                isr=[1, 2],
                directories=[directory(1), directory(2)],
            ),
            id="a replica less needs no second step",
        ),
        pytest.param(
            partition([1, 2, 3], isr=[1, 3], removing=[3]), {}, None, id="fewer replicas wait for all that stay"
        ),
        pytest.param(
            partition(),
            {"replicas": [1, 6, 2, 3], "adding": [6]},
            record(
                replicas=[1, 6, 2, 3],
                adding_replicas=[6],
                directories=[directory(1), UNASSIGNED_DIRECTORY, directory(2), directory(3)],
            ),
            id="a broker with several directories",
        ),
        pytest.param(
            partition(),
            {"replicas": [1, 2, 3, 4], "adding": [4], "metadata_version": 16},
            record(replicas=[1, 2, 3, 4], adding_replicas=[4]),
            id="before 3.7 there are no directories",
        ),
    ],
)
def test_changes(old: PartitionImage, given: dict[str, Any], expected: PartitionChangeRecord | None) -> None:
    assert change(old, **given) == expected


def test_a_directory_is_assigned() -> None:
    builder = PartitionChange(
        TOPIC,
        0,
        partition(),
        is_acceptable=lambda _: True,
        default_directory=directory,
        min_isr=1,
        elr_enabled=True,
        metadata_version=LATEST,
    )
    builder.set_directory(2, directory(9))
    assert builder.build() == record(directories=[directory(1), directory(9), directory(3)])
