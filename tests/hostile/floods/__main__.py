"""`python -m tests.hostile.floods`: every flood for some seconds, and a table of what a healthy client noticed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from math import inf

from tests.hostile.floods import FLOODS
from tests.hostile.floods.report import Outcome, run_flood
from tests.hostile.floods.run import Flood

KAFKA = "of Kafka"
HEADER = (
    f"{'flood':42} {'listener':14} {'steps':>8} {'refused':>8} {'p99 before':>10} {'during':>9} {'ratio':>6} "
    f"{'CPU before':>10} {'during':>9} {'ratio':>6} {'longest':>9} {'CPU':>5} {'memory':>7}  bound"
)


def main() -> int:
    """The command; the exit code is 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.floods", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each flood goes on")
    parser.add_argument("--steps", type=int, help="each flood has so many steps in place of --seconds")
    parser.add_argument("--listener", action="append", help="only this security protocol (may be repeated)")
    parser.add_argument(
        "--kafka", action="store_true", help="also Apache Kafka, without security, for the floods that need none"
    )
    parser.add_argument("--part", metavar="K/N", default="1/1", help="the K-th of N parts of all floods and listeners")
    parser.add_argument("names", nargs="*", help="only floods whose names contain one of these")
    options = parser.parse_args()
    part, parts = (int(number) for number in options.part.split("/"))
    if not 1 <= part <= parts:
        parser.error(f"there is no part {options.part}")
    findings: list[str] = []
    chosen = list(_chosen(options.names, options.listener, of_kafka=options.kafka))[part - 1 :: parts]
    print(HEADER, flush=True)
    for flood, listener in chosen:
        seconds, steps = (options.seconds, inf) if options.steps is None else (inf, options.steps)
        outcome = run_flood(flood, listener, seconds, steps=steps, of_kafka=listener == KAFKA)
        print(line_of(outcome), flush=True)
        findings += [f"{flood.name} on {listener}: {finding}" for finding in outcome.findings]
    print("\n".join([f"{len(chosen)} floods, {len(findings)} findings", *findings]))
    return 1 if findings else 0


def _chosen(names: Sequence[str], listeners: Sequence[str] | None, *, of_kafka: bool) -> Iterator[tuple[Flood, str]]:
    """Floods with their listeners, of which one is Kafka's where that is compared."""
    for flood in FLOODS:
        if names and not any(name in flood.name for name in names):
            continue
        for listener in flood.listeners:
            if not listeners or listener in listeners:
                yield flood, listener
        if of_kafka and flood.listeners[0] in {"PLAINTEXT", "SASL_SSL"}:
            yield flood, KAFKA


def line_of(outcome: Outcome) -> str:
    """A row of the table."""
    before, during = outcome.before, outcome.during
    mark = "!" if outcome.findings else " "
    return (
        f"{outcome.flood:42} {outcome.listener:14} {outcome.steps:8} {outcome.refused:8} {before.p99_ms:7.1f} ms "
        f"{during.p99_ms:6.1f} ms {outcome.ratio:5.1f}{mark} "
        f"{before.p99_cpu_ms:7.2f} ms {during.p99_cpu_ms:6.2f} ms "
        f"{during.p99_cpu_ms / before.p99_cpu_ms:6.1f} {during.longest_ms:6.0f} ms {outcome.cpu:5.0%} "
        f"{outcome.peak >> 20:4} MB  {outcome.bound}"
    )


if __name__ == "__main__":
    sys.exit(main())
