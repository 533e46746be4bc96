"""All groups of the table, in order, with their settings and descriptions."""

from __future__ import annotations

from bench import cases, compaction, coordination, spark, spark_etl, synced, thousand
from bench.case import Group, Scale

PAGE_CACHE = {"barnabas.log.sync": "os"}  # Kafka's default
CLEANER = {"log.cleaner.backoff.ms": "100"}


def all_groups(scale: Scale) -> list[Group]:
    """All groups with their cases."""
    return [
        Group(
            "Page cache",
            "Both hand records to the page cache and acknowledge them; nothing waits for the disk.",
            tuple(cases.cases()),
            barnabas=PAGE_CACHE,
            kafka={},
            warm_up=cases.warm_up,
        ),
        Group(
            "Synced",
            "Every acknowledgement is on the disk. p99/sync is the 99th percentile of the requests in units of the "
            "disk's own, measured by itself right before.",
            tuple(synced.cases()),
            barnabas={"barnabas.log.sync": "always"},
            kafka={"log.flush.interval.messages": "1"},
            warm_up=synced.warm_up,
        ),
        Group(
            "Groups and transactions",
            "Both hand records to the page cache. Members of `bench.members` speak the protocol themselves, "
            "transactions are confluent-kafka's. p50 of a join is until all 100 partitions have an owner.",
            tuple(coordination.cases()),
            barnabas=PAGE_CACHE | coordination.SETTINGS,
            kafka=coordination.SETTINGS,
            warm_up=coordination.warm_up,
        ),
        Group(
            "Compaction",
            "Both hand records to the page cache, and their cleaners look for work ten times a second. Topics have "
            + ", ".join(f"`{key}={value}`" for key, value in compaction.CONFIG.items())
            + ". MB/s are of input; req/s, p50 and p99 are of the traffic beside.",
            tuple(compaction.cases()),
            barnabas=PAGE_CACHE | CLEANER,
            kafka=CLEANER,
            warm_up=compaction.warm_up,
        ),
        Group(
            "1,000 partitions",
            "Both hand records to the page cache. All runs of one broker come before those of the other. `start s` is "
            "until the first Metadata answer, `all s` until every partition serves ListOffsets, `kill read MB` what "
            "the process has read until then (by system calls, its program included). The log is in the page cache.",
            tuple(thousand.cases(scale)),
            barnabas=PAGE_CACHE,
            kafka={},
        ),
        Group(
            "Spark",
            "Both hand records to the page cache. PySpark in `local[2]` on the same cores, topics of "
            f"{spark.PARTITIONS} partitions; CPU s are the broker's while the row runs.",
            tuple(spark.cases(scale)),
            barnabas=PAGE_CACHE | spark.SETTINGS,
            kafka=spark.SETTINGS,
            warm_up=spark.warm_up,
        ),
        Group(
            "Pipeline",
            "`barnabas pipeline run etl --once` beside a plain PySpark job that does the same work, each in a new "
            f"process with `local[2]`, both on a Barnabas of {spark_etl.PARTITIONS} partitions. run s is without the "
            "start of the session, whole s with it.",
            tuple(spark_etl.cases(scale)),
            barnabas=PAGE_CACHE,
            kafka=PAGE_CACHE,
            sides=("pipeline", "plain Spark"),
        ),
    ]
