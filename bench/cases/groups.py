"""The groups of cases, in the order of the tables, with the settings of both brokers."""

from __future__ import annotations

from bench.cases import (
    cluster,
    compaction,
    console,
    coordination,
    coordinator_cases,
    page_cache,
    secured,
    spark,
    spark_etl,
    synced,
    thousand,
)
from bench.cases.case import Group, Scale

PAGE_CACHE = {"barnabas.log.sync": "os"}  # as Kafka does by default
CLEANER = {"log.cleaner.backoff.ms": "100"}


def all_groups(scale: Scale) -> list[Group]:
    """All groups with their cases."""
    return [
        Group(
            "Page cache",
            "Neither broker syncs before acknowledging.",
            tuple(page_cache.cases()),
            barnabas=PAGE_CACHE,
            kafka={},
            warm_up=page_cache.warm_up,
        ),
        Group(
            "Synced",
            "Both sync records before they acknowledge them. p99/sync is the requests' 99th percentile divided by that "
            "of the disk's sync, measured directly before.",
            tuple(synced.cases()),
            barnabas={"barnabas.log.sync": "always"},
            kafka={"log.flush.interval.messages": "1"},
            warm_up=synced.warm_up,
        ),
        *secured.groups(PAGE_CACHE),
        Group(
            "Groups and transactions",
            "Neither broker syncs before acknowledging. Members of `bench.loads.members` implement the protocol, "
            "transactions are confluent-kafka's. p50 of a join is the time until all 100 partitions have an owner.",
            tuple(coordination.cases()),
            barnabas=PAGE_CACHE | coordination.SETTINGS,
            kafka=coordination.SETTINGS,
            warm_up=coordination.warm_up,
        ),
        cluster.group(PAGE_CACHE, coordinator_cases.cases()),
        _compaction(),
        *console.groups(scale, PAGE_CACHE),
        _thousand_partitions(scale),
        Group(
            "Spark",
            "Neither broker syncs before acknowledging. PySpark in `local[2]` on the same cores, topics of "
            f"{spark.PARTITIONS} partitions; CPU s are the broker's during the case.",
            tuple(spark.cases(scale)),
            barnabas=PAGE_CACHE | spark.SETTINGS,
            kafka=spark.SETTINGS,
            warm_up=spark.warm_up,
        ),
        Group(
            "Pipeline",
            "`barnabas pipeline run etl --once` compared with a plain PySpark job for the same work, each in a new "
            f"process with `local[2]`, on Barnabas, with {spark_etl.PARTITIONS} partitions. run s is without the "
            "start of the session, whole s with it.",
            tuple(spark_etl.cases(scale)),
            barnabas=PAGE_CACHE,
            kafka=PAGE_CACHE,
            sides=("pipeline", "plain Spark"),
        ),
    ]


def _thousand_partitions(scale: Scale) -> Group:
    return Group(
        "1,000 partitions",
        "Neither broker syncs before acknowledging. All runs of one broker come before the other's. `start s` is "
        "the time until the first Metadata response, `all s` until every partition serves ListOffsets, `kill read "
        "MB` the bytes read until then (by system calls, including code). The log is in the page cache.",
        tuple(thousand.cases(scale)),
        barnabas=PAGE_CACHE,
        kafka={},
    )


def _compaction() -> Group:
    return Group(
        "Compaction",
        "Neither broker syncs before acknowledging; their cleaners check for dirty logs every 100 ms. Topics have "
        + ", ".join(f"`{key}={value}`" for key, value in compaction.CONFIG.items())
        + ". MB/s are of input; req/s, p50 and p99 are of the load during it.",
        tuple(compaction.cases()),
        barnabas=PAGE_CACHE | CLEANER,
        kafka=CLEANER,
        warm_up=compaction.warm_up,
    )
