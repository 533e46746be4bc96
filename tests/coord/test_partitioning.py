"""The partition of a coordinator's key."""

from __future__ import annotations

import pytest

from barnabas.coord.partitioning import coordinator_partition, java_hash
from tests.support.cases import for_each


@for_each(
    ("text", "expected"),
    [("", 0), ("a", 97), ("group", 98629247), ("polygenelubricants", -(2**31)), ("𝄞", 1772394), ("é", 233)],
)
def test_java_hash_is_that_of_java(text, expected):
    assert java_hash(text) == expected


@pytest.mark.parametrize(("key", "partition"), [("group", 98629247 % 50), ("polygenelubricants", 0), ("", 0)])
def test_a_key_belongs_to_the_same_partition_as_in_kafka(key, partition):
    """T1, G2: |hashCode| % partitions, and 0 for the number that has no absolute value."""
    assert coordinator_partition(key, 50) == partition
