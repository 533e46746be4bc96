"""`barnabas perf consume`: rate of reading, and the time that fetches take.

Every record is decoded, as a consumer needs it; `--no-decode` counts the records in batch headers, which measures the
broker rather than this client. The time of a fetch is from its request until its answer is taken from the socket:
while this client decodes, the next answer waits there.
"""

from __future__ import annotations

from time import monotonic

import click

from barnabas.cli.connect.settings import setting
from barnabas.cli.options.duration import Duration
from barnabas.cli.options.parameters import bootstrap_option, connect, isolation_option, output_option
from barnabas.cli.perf.common import rates, show_result
from barnabas.cli.perf.histogram import Histogram
from barnabas.client.errors import TimedOut
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, end_offsets, start_offsets
from barnabas.client.reader import Fetched, Reader
from barnabas.terminal.progress import progress

SHOW_EVERY_S = 0.5
WAIT_S = 0.1


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-n", "--num-records", type=click.IntRange(min=1), metavar="N", help="[default: all that are there now]")
@click.option("--from-latest", is_flag=True, help="Begin with the next record (needs -n).")
@click.option(
    "--warm-up", type=click.IntRange(min=0), default=0, metavar="N", help="Do not measure the first N records."
)
@click.option("--decode/--no-decode", default=True, show_default=True, help="Decode the records of each batch.")
@isolation_option
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(),
    default=10.0,
    metavar="TIME",
    help="Fail when no record came for this time (exit code 4). [default: 10s]",
)
@output_option
@bootstrap_option
def consume(
    topics: tuple[str, ...],
    num_records: int | None,
    from_latest: bool,
    warm_up: int,
    decode: bool,
    isolation: str,
    timeout_s: float,
    output: str,
    bootstrap: str,
) -> None:
    """Measure how fast the records of TOPICs are read, as kafka-consumer-perf-test does.

    The percentiles are of fetches, from the request until its answer is taken from the socket.
    """
    if from_latest and num_records is None:
        raise click.UsageError("--from-latest needs -n N")
    committed_only = isolation == "read_committed"
    level = READ_COMMITTED if committed_only else READ_UNCOMMITTED
    with connect(bootstrap, min(timeout_s, float(setting("timeout")))) as cluster:
        partitions = [(name, index) for name in topics for index in range(len(cluster.find_topic(name).leaders))]
        ends = end_offsets(cluster, partitions, level)
        starts = ends if from_latest else start_offsets(cluster, partitions)
        measured = Measurement(num_records, warm_up, decode)
        reader = Reader(
            cluster,
            starts,
            None if from_latest else ends,
            committed_only=committed_only,
            on_fetched=measured.fetches.add,
        )
        total = num_records or sum(ends[partition] - starts[partition] for partition in partitions)
        try:
            with progress("records", total) as show:
                _read(reader, measured, timeout_s, show)
        except KeyboardInterrupt:
            show_result(measured.result(), output)
            raise
        if num_records is not None and measured.seen < num_records:
            raise TimedOut(f"the topics have only {measured.seen} of {num_records} records")
        show_result(measured.result(), output)


def _read(reader: Reader, measured: Measurement, timeout_s: float, show: object) -> None:
    shown_at = last = monotonic()
    while not measured.is_done and not reader.is_done:
        fetched = reader.poll(WAIT_S)
        for fetched_part in fetched:
            measured.count(fetched_part)
        now = monotonic()
        if fetched:
            last = now
        elif now - last >= timeout_s:
            raise TimedOut(f"{measured.seen} records read, and then none for {timeout_s:g} s")
        if now - shown_at >= SHOW_EVERY_S:
            shown_at = now
            assert callable(show)
            show(measured.seen, measured.note(now))


class Measurement:
    """Counts records and bytes after the warm-up."""

    def __init__(self, limit: int | None, warm_up: int, decode: bool) -> None:
        self.fetches = Histogram()
        self.limit = limit
        self.warm_up = warm_up
        self.decode = decode
        self.seen = 0
        self._measured = 0
        self._bytes = 0
        self._began = monotonic()
        self._started = self._ended = self._began
        self._first_after: float | None = None
        self._noted = (0, self._began)

    @property
    def is_done(self) -> bool:
        """True if the wanted number of records was read."""
        return self.limit is not None and self.seen >= self.limit

    def count(self, fetched: Fetched) -> None:
        """Count what a fetch returned for a partition."""
        records = _decoded(fetched) if self.decode else fetched.record_count
        now = monotonic()
        if self._first_after is None:
            self._first_after = now - self._began
        self.seen += records
        if self.seen <= self.warm_up:
            self._started = self._ended = now
            return
        self._measured += records
        self._bytes += fetched.size
        self._ended = now

    def note(self, now: float) -> str:
        """The rate since the last note."""
        seen, at = self._noted
        self._noted = (self.seen, now)
        return f"{(self.seen - seen) / (now - at):,.0f}/s"

    def result(self) -> dict[str, object]:
        """The measurement; bytes are those of batches as they were fetched."""
        row = rates(self._measured, self._bytes, self._ended - self._started)
        row["first_record_ms"] = None if self._first_after is None else round(self._first_after * 1000, 3)
        return (
            row | {"fetches": self.fetches.count} | {f"fetch_{key}": value for key, value in self.fetches.row().items()}
        )


def _decoded(fetched: Fetched) -> int:
    count = 0
    for _ in fetched.records():
        count += 1
    return count
